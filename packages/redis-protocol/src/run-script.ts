import type { Call } from '@locks/core/backend';
import type { RedisCommand, RedisPort } from './port.ts';
import type { Script } from './generated/scripts.ts';
import { isUnknownScript, wrongClient } from './retryable.ts';

export type { Script } from './generated/scripts.ts';

/**
 * Repeats a failed `EVALSHA` with the script's source if the server does not know the script (new, restarted, flushed, a
 * new master). Throws any other error; a refusal by an ACL then names the missing rights, and one of a cluster's node the client
 * that it needs.
 */
export async function recover(
  port: RedisPort,
  script: Script,
  key: string,
  command: RedisCommand,
  error: unknown,
): Promise<unknown> {
  try {
    if (!isUnknownScript(error)) throw (!port.cluster && wrongClient(error)) || error;
    return await port.send(key, ['EVAL', script.source, ...command.slice(2)]);
  } catch (failed) {
    nameMissingRights(script, command, failed as Error);
    throw failed;
  }
}

/**
 * Runs a script by its hash, and by its source where the server does not know it.
 *
 * @param mayRepeat - whether the script may still run when the server turns out not to know it; otherwise its error is thrown
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a node of a cluster that got a client for one server; errors of the client and of
 * the script as they are
 */
export async function runScript(
  port: RedisPort,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
  mayRepeat: () => boolean,
): Promise<unknown> {
  const key = keys[0] as string;
  const command: RedisCommand = ['EVALSHA', script.sha1, String(keys.length), ...keys, ...args];
  try {
    return await port.send(key, command, script.source);
  } catch (error) {
    if (!mayRepeat()) throw error;
    return recover(port, script, key, command, error);
  }
}

/** Whether a call's request was abandoned meanwhile: a repetition would come after the abandon. */
export function isOver(call: Call): boolean | undefined {
  return call.signal?.aborted || call.now() > call.deadline;
}

/** Of a script that may run at any later time too: it reads, it renews what is still held, or it ends what its caller gives up. */
export const mayAlwaysRepeat = (): boolean => true;

/**
 * Adds the rights to grant to the message of a refusal. Servers before 7.2 name only the line of the script with the
 * forbidden command; no server names the keys of the call.
 */
function nameMissingRights({ source }: Script, [, , count, ...rest]: RedisCommand, error: Error): void {
  const [, line] = /t run.+:(\d+)/.exec(error.message) ?? [];
  const sign = line ? ' +' : ' ~';
  let missing: readonly string[] | null | undefined;
  if (line) missing = source.split('\n')[+line - 1]?.match(/(?<=call\(')\w+/g);
  else if (/NOPERM.+key|t access/.test(error.message)) missing = rest.slice(0, Number(count));
  if (missing) error.message += ` Grant${sign}${missing.join(sign)}`;
}
