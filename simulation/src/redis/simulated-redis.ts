import { bytesOf, textOf } from './bytes.ts';
import type { CommandContext, CommandTable, SimulatedCommand } from './command.ts';
import { hashCommands } from './hash-commands.ts';
import { keyCommands } from './key-commands.ts';
import { Keyspace, type KeyspaceEntry } from './keyspace.ts';
import { LuaScripts } from './lua-scripts.ts';
import { readInteger } from './numbers.ts';
import { SimulatedRedisError, type SimulatedReply, StatusReply, UnknownCommandError } from './reply.ts';
import { serverCommands } from './server-commands.ts';
import { sortedSetCommands } from './sorted-set-commands.ts';
import { stringCommands } from './string-commands.ts';

const COMMANDS: CommandTable = {
  ...stringCommands,
  ...hashCommands,
  ...sortedSetCommands,
  ...keyCommands,
  ...serverCommands,
};

export interface SimulatedRedisOptions {
  readonly lua: LuaScripts;
  /** The server's clock: microseconds since 1970, an integer. */
  micros(): number;
  /** The command of this version that deletes a key with a given value. @defaultValue none, as in Redis 7 */
  readonly deletesBy?: DeletingCommand | undefined;
  /** Another database of this server: channels and scripts are common to both. @defaultValue a server of its own */
  readonly besides?: SimulatedRedis;
}

/** Redis has the first one from 8.4, Valkey the second one from 9. */
export type DeletingCommand = 'DELEX' | 'DELIFEQ';

/** What a client sees of a reply: texts, numbers, null and lists. Errors are thrown, except within lists. */
export type ClientReply = string | number | null | SimulatedRedisError | readonly ClientReply[];

type Listener = (message: string) => void;

/** What one command, or one script as a whole, changed: what replicas get. */
interface ReplicatedStep {
  readonly changes: ReadonlyMap<string, KeyspaceEntry | undefined>;
  readonly messages: readonly (readonly [channel: string, message: string])[];
}

/**
 * One Redis server in virtual time: the commands that `@locks/redis-protocol` and its scripts use, and no other; an unknown
 * command is an error. Commands run one after another, as on a real server.
 */
export class SimulatedRedis {
  readonly #options: SimulatedRedisOptions;
  readonly #keyspace = new Keyspace();
  readonly #scripts: Set<string>;
  readonly #listeners: Map<string, Set<Listener>>;
  readonly #replicas = new Map<SimulatedRedis, ReplicatedStep[]>();
  #master: SimulatedRedis | undefined;
  #messages: (readonly [channel: string, message: string])[] = [];

  constructor(options: SimulatedRedisOptions) {
    this.#options = options;
    const { besides } = options;
    this.#scripts = besides === undefined ? new Set() : besides.#scripts;
    this.#listeners = besides === undefined ? new Map() : besides.#listeners;
  }

  /** Executes one command as a client sends it. Throws `SimulatedRedisError` for an error reply. */
  execute(command: readonly string[]): ClientReply {
    const reply = this.#execute(command.map(bytesOf));
    if (reply instanceof SimulatedRedisError) throw reply;
    return clientReply(reply);
  }

  /** Listens to a channel until the returned function is called, or the server restarts. */
  subscribe(channel: string, listener: Listener): () => void {
    const key = bytesOf(channel);
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners);
    // One function that subscribes twice counts twice.
    const own: Listener = (message) => listener(message);
    listeners.add(own);
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key);
    };
  }

  /** Ends all subscriptions, forgets all scripts, and without `keepData` all keys; keys that end meanwhile end all the same. */
  restart({ keepData }: { readonly keepData: boolean }): void {
    this.#listeners.clear();
    this.#scripts.clear();
    if (!keepData) this.#keyspace.clear();
    this.#finishStep();
  }

  /**
   * Becomes a replica: takes over the master's keys at once, and from then on what {@link receive} fetches. Until
   * {@link promote} it refuses writes.
   */
  replicateFrom(master: SimulatedRedis): void {
    this.promote();
    this.#master = master;
    this.#keyspace.clear();
    for (const key of master.#keyspace.keys()) this.#keyspace.restore(key, master.#keyspace.copyOf(key));
    master.#replicas.set(this, []);
    this.#finishStep();
  }

  /** How many steps of its master a replica has not received. */
  get lag(): number {
    return this.#pending.length;
  }

  get isReplica(): boolean {
    return this.#master !== undefined;
  }

  /** Receives the next steps of the master, in their order; each command or script comes as a whole. */
  receive(steps = Infinity): void {
    for (const { changes, messages } of this.#pending.splice(0, steps)) {
      for (const [key, entry] of changes) this.#keyspace.restore(key, entry);
      for (const [channel, message] of messages) this.#publish(channel, message);
      this.#finishStep();
    }
  }

  /** Becomes a master with what it has received; the rest is lost. */
  promote(): void {
    if (this.#master !== undefined) this.#master.#replicas.delete(this);
    this.#master = undefined;
  }

  /** Removes one key as a server whose memory is full does; `choose` picks one of so many. Returns its name. */
  evict(choose: (count: number) => number): string | undefined {
    const keys = this.keys();
    const key = keys[choose(keys.length)];
    if (key === undefined) return undefined;
    this.#keyspace.delete(bytesOf(key));
    this.#finishStep();
    return key;
  }

  /** The keys that exist now. */
  keys(): readonly string[] {
    const { now } = this.#context();
    return this.#keyspace
      .keys()
      .filter((key) => this.#keyspace.entry(key, now) !== undefined)
      .map(textOf);
  }

  /** A copy of a key's value, as bytes, and when it ends. */
  peek(key: string): KeyspaceEntry | undefined {
    const bytes = bytesOf(key);
    return this.#keyspace.entry(bytes, this.#context().now) && this.#keyspace.copyOf(bytes);
  }

  /** How many listen to a channel. */
  listeners(channel: string): number {
    return this.#listeners.get(bytesOf(channel))?.size ?? 0;
  }

  /** The steps of the master that this replica has not received. */
  get #pending(): ReplicatedStep[] {
    return (this.#master === undefined ? undefined : this.#master.#replicas.get(this)) ?? [];
  }

  #execute(command: readonly string[]): SimulatedReply {
    const [name = '', ...args] = command;
    switch (name.toUpperCase()) {
      case 'EVAL':
        return this.#eval(this.#remember(args[0] ?? ''), args);
      case 'EVALSHA':
        return this.#eval((args[0] ?? '').toLowerCase(), args);
      case 'SCRIPT':
        return this.#script(args);
      case 'INFO':
        return '# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n';
      default: {
        const reply = this.#run(this.#context(), command);
        this.#finishStep();
        return reply;
      }
    }
  }

  /** Throws what the server says to a command that it does not know, or with too few or too many arguments. */
  check([name = '', ...args]: readonly string[]): void {
    if (!['EVAL', 'EVALSHA', 'SCRIPT', 'INFO'].includes(name.toUpperCase())) this.#commandOf(name, args);
  }

  #run(context: CommandContext, [name = '', ...args]: readonly string[]): SimulatedReply {
    const command = this.#commandOf(name, args);
    if (command.isWrite && this.#master) {
      throw new SimulatedRedisError("READONLY You can't write against a read only replica.");
    }
    return command.run(context, args);
  }

  #commandOf(name: string, args: readonly string[]): SimulatedCommand {
    const called = name.toUpperCase();
    const command = COMMANDS[called];
    const isOfAnotherVersion =
      (called === 'DELEX' || called === 'DELIFEQ') && called !== this.#options.deletesBy;
    if (command === undefined || isOfAnotherVersion) {
      const beginning = args.map((arg) => `'${arg.slice(0, 128)}' `).join('');
      throw new UnknownCommandError(`ERR unknown command '${name}', with args beginning with: ${beginning}`);
    }
    const { least, most = Infinity } = command;
    if (args.length < least || args.length > most) {
      throw new SimulatedRedisError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
    }
    return command;
  }

  #eval(sha1: string, [, count = '', ...rest]: readonly string[]): SimulatedReply {
    if (!this.#scripts.has(sha1)) {
      throw new SimulatedRedisError('NOSCRIPT No matching script. Please use EVAL.');
    }
    const keys = readInteger(count);
    if (keys < 0) throw new SimulatedRedisError("ERR Number of keys can't be negative");
    if (keys > rest.length) {
      throw new SimulatedRedisError("ERR Number of keys can't be greater than number of args");
    }
    // One moment for the whole script.
    const context = this.#context();
    try {
      return this.#options.lua.run(sha1, rest.slice(0, keys), rest.slice(keys), (command) =>
        this.#run(context, command),
      );
    } finally {
      // What a script wrote before it failed stays.
      this.#finishStep();
    }
  }

  #remember(source: string): string {
    const sha1 = LuaScripts.sha1(source);
    if (!this.#scripts.has(sha1)) this.#options.lua.compile(sha1, source);
    this.#scripts.add(sha1);
    return sha1;
  }

  #script([what = '', ...args]: readonly string[]): SimulatedReply {
    switch (what.toUpperCase()) {
      case 'LOAD':
        return this.#remember(args[0] ?? '');
      case 'EXISTS':
        return args.map((sha1) => (this.#scripts.has(sha1.toLowerCase()) ? 1 : 0));
      case 'FLUSH':
        this.#scripts.clear();
        return new StatusReply('OK');
      default:
        throw new SimulatedRedisError(`ERR unknown subcommand '${what}'. Try SCRIPT HELP.`);
    }
  }

  #context(): CommandContext {
    const micros = this.#options.micros();
    return {
      keyspace: this.#keyspace,
      micros,
      now: Math.floor(micros / 1000),
      publish: (channel, message) => {
        this.#messages.push([channel, message]);
        return this.#publish(channel, message);
      },
      listeners: (channel) => this.#listeners.get(channel)?.size ?? 0,
    };
  }

  #publish(channel: string, message: string): number {
    const listeners = [...(this.#listeners.get(channel) ?? [])];
    const text = textOf(message);
    for (const listener of listeners) listener(text);
    return listeners.length;
  }

  /** Hands what was written to the replicas. */
  #finishStep(): void {
    const { written } = this.#keyspace;
    if (written.size === 0 && this.#messages.length === 0) return;
    for (const pending of this.#replicas.values()) {
      const changes = new Map([...written].map((key) => [key, this.#keyspace.copyOf(key)] as const));
      pending.push({ changes, messages: this.#messages });
    }
    written.clear();
    this.#messages = [];
  }
}

function clientReply(reply: SimulatedReply): ClientReply {
  if (typeof reply === 'string') return textOf(reply);
  if (reply instanceof StatusReply) return reply.text;
  if (Array.isArray(reply)) return (reply as readonly SimulatedReply[]).map(clientReply);
  return reply as number | null | SimulatedRedisError;
}
