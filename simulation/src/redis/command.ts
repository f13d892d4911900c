import type { Keyspace, KeyspaceEntry } from './keyspace.ts';
import type { SimulatedReply } from './reply.ts';

/** What a command works on: one server at one moment. */
export interface CommandContext {
  readonly keyspace: Keyspace;
  /** Server time in microseconds; it stands still while a command or a script runs. */
  readonly micros: number;
  /** The same in whole milliseconds, by which keys end. */
  readonly now: number;
  publish(channel: string, message: string): number;
  listeners(channel: string): number;
}

export interface SimulatedCommand {
  /** How many arguments it takes at least, and at most. */
  readonly least: number;
  readonly most?: number;
  /** A replica refuses it. */
  readonly isWrite?: true;
  run(context: CommandContext, args: readonly string[]): SimulatedReply;
}

export type CommandTable = Readonly<Record<string, SimulatedCommand>>;

export function entryOf({ keyspace, now }: CommandContext, key: string): KeyspaceEntry | undefined {
  return keyspace.entry(key, now);
}
