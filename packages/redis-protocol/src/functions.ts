import { createHash } from 'node:crypto';
import { type Script, scripts } from './generated/scripts.ts';
import type { RedisCommand, RedisPort } from './port.ts';
import { isUnknownScript } from './retryable.ts';

/** The scripts that need memory: a server without memory left refuses them, and runs the others all the same. */
const NEEDS_MEMORY: readonly string[] = ['acquire', 'many'];

type ScriptName = keyof typeof scripts;

/** The scripts of locks. */
const names = (Object.keys(scripts) as ScriptName[]).filter((name) => name !== 'fencedSet');
const version = createHash('sha1')
  .update(names.map((name) => scripts[name].sha1).join())
  .digest('hex')
  .slice(0, 16);

/** The function of a script. The name has the version of the library: libraries of several versions stand beside each other. */
function functionOf(name: string): string {
  return `locks_${version}_${name}`;
}

interface Registered {
  readonly script: Script;
  readonly name: string;
  /** The number of lines of the library before the script. */
  readonly before: number;
}

let library: { readonly code: string; readonly functions: readonly Registered[] } | undefined;

function readLibrary(): NonNullable<typeof library> {
  if (library !== undefined) return library;
  let code = `#!lua name=locks_${version}\n`;
  const functions: Registered[] = [];
  for (const name of names) {
    const flags = NEEDS_MEMORY.includes(name) ? '' : "'allow-oom',";
    code += `redis.register_function{function_name='${functionOf(name)}',flags={${flags}'allow-cross-slot-keys'},callback=function(KEYS,ARGV)\n`;
    functions.push({ script: scripts[name], name: functionOf(name), before: code.split('\n').length - 1 });
    code += `${scripts[name].source}\nend}\n`;
  }
  library = { code, functions };
  return library;
}

/**
 * The library of Redis Functions with all scripts of this version, for an administrator who loads it with `FUNCTION LOAD` where the
 * user of the locks may not.
 */
export function functionLibrary(): string {
  return readLibrary().code;
}

/**
 * Calls functions in place of scripts, for users who may not run scripts. Needs Redis 7.
 *
 * @returns the port that calls them, and what loads the library where it is missing
 */
export function withFunctions(port: RedisPort): {
  readonly calling: RedisPort;
  readonly load: () => Promise<void>;
} {
  const { code, functions } = readLibrary();
  const call = async (key: string, found: Registered, rest: readonly string[]): Promise<unknown> => {
    try {
      return await port.send(key, ['FCALL', found.name, ...rest]);
    } catch (error) {
      throw asOfScript(error, found);
    }
  };
  const load = async (): Promise<void> => {
    for (const send of await port.masters()) {
      await send(['FUNCTION', 'LOAD', code]).catch((error: unknown) => {
        if (/already exists/.test(String(error))) return;
        if (error instanceof Error && /NOPERM/.test(error.message)) {
          error.message += ' Grant +function|load, or load functionLibrary() with another user';
        }
        throw error;
      });
    }
  };
  const send = async (key: string, command: RedisCommand): Promise<unknown> => {
    const [name, script, ...rest] = command;
    if (name === 'EVALSHA') {
      const found = functions.find(({ script: { sha1 } }) => sha1 === script);
      if (found !== undefined) return call(key, found, rest);
    }
    if (name === 'EVAL') {
      const found = functions.find(({ script: { source } }) => source === script);
      if (found === undefined) return port.send(key, command);
      try {
        return await call(key, found, rest);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
      }
      await load();
      return call(key, found, rest);
    }
    return port.send(key, command);
  };
  // The port keeps its private state: only `send` is another one.
  const calling = new Proxy(port, {
    get(target, property) {
      if (property === 'send') return send;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
  return { calling, load };
}

/** The error as the script would have given it: an unknown function is loaded by its source, and lines count from its begin. */
function asOfScript(error: unknown, { before }: Registered): unknown {
  if (!(error instanceof Error)) return error;
  if (/Function not found/i.test(error.message))
    return new Error('NOSCRIPT no such function', { cause: error });
  error.message = error.message.replace(
    /(@user_function:)(\d+)/,
    (_, place: string, line: string) => `${place}${Number(line) - before}`,
  );
  return error;
}
