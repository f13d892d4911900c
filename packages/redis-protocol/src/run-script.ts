import type { RedisCommand, RedisPort } from './port.ts';
import type { Script } from './generated/scripts.ts';
import { isUnknownScript } from './retryable.ts';

/**
 * The second try of an `EVALSHA` that failed: a server that does not know the script (new, restarted, flushed, a new
 * master) gets its source. Any other error is thrown.
 */
export function recover(
  port: RedisPort,
  script: Script,
  key: string,
  command: RedisCommand,
  error: unknown,
): Promise<unknown> {
  if (!isUnknownScript(error)) throw error;
  return port.send(key, ['EVAL', script.source, ...command.slice(2)]);
}

export async function runScript(
  port: RedisPort,
  script: Script,
  keys: readonly [string, ...string[]],
  args: readonly string[],
): Promise<unknown> {
  const command: RedisCommand = ['EVALSHA', script.sha1, String(keys.length), ...keys, ...args];
  try {
    return await port.send(keys[0], command);
  } catch (error) {
    return recover(port, script, keys[0], command, error);
  }
}
