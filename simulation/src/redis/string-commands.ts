import { type CommandContext, type CommandTable, entryOf } from './command.ts';
import { readInteger } from './numbers.ts';
import { OK, SimulatedRedisError, type SimulatedReply } from './reply.ts';

const SYNTAX_ERROR = 'ERR syntax error';

export const stringCommands: CommandTable = {
  GET: { least: 1, most: 1, run: (context, [key = '']) => get(context, key) },
  GETSET: {
    least: 2,
    most: 2,
    isWrite: true,
    run: (context, [key = '', text = '']) => {
      const former = get(context, key);
      context.keyspace.put(key, { type: 'string', text });
      return former;
    },
  },
  SET: { least: 2, isWrite: true, run: set },
  DELEX: {
    least: 3,
    most: 3,
    isWrite: true,
    run: (context, [key = '', condition = '', text = '']) => {
      if (condition.toUpperCase() !== 'IFEQ') throw new SimulatedRedisError(SYNTAX_ERROR);
      return deleteIfEqual(context, key, text);
    },
  },
  DELIFEQ: {
    least: 2,
    most: 2,
    isWrite: true,
    run: (context, [key = '', text = '']) => deleteIfEqual(context, key, text),
  },
  SETRANGE: { least: 3, most: 3, isWrite: true, run: setRange },
};

function get({ keyspace, now }: CommandContext, key: string): string | null {
  return keyspace.read(key, 'string', now)?.text ?? null;
}

function deleteIfEqual(context: CommandContext, key: string, text: string): number {
  if (get(context, key) !== text) return 0;
  context.keyspace.delete(key);
  return 1;
}

function set(context: CommandContext, [key = '', text = '', ...options]: readonly string[]): SimulatedReply {
  const { keyspace, now } = context;
  let condition: string | undefined;
  let expiresAt: number | undefined;
  let keepsTtl = false;
  for (let at = 0; at < options.length; at++) {
    const option = options[at]?.toUpperCase();
    if (option === 'NX' || option === 'XX') condition = option;
    else if (option === 'KEEPTTL') keepsTtl = true;
    else if (option === 'PX' && at + 1 < options.length) {
      const px = readInteger(options[++at] as string);
      if (px <= 0) throw new SimulatedRedisError("ERR invalid expire time in 'set' command");
      expiresAt = now + px;
    } else throw new SimulatedRedisError(SYNTAX_ERROR);
  }
  if (keepsTtl && expiresAt !== undefined) throw new SimulatedRedisError(SYNTAX_ERROR);
  const entry = entryOf(context, key);
  if (condition === 'NX' && entry !== undefined) return null;
  if (condition === 'XX' && entry === undefined) return null;
  keyspace.put(key, { type: 'string', text }, keepsTtl ? entry?.expiresAt : expiresAt);
  return OK;
}

function setRange(
  { keyspace, now }: CommandContext,
  [key = '', from = '', patch = '']: readonly string[],
): number {
  const offset = readInteger(from);
  if (offset < 0) throw new SimulatedRedisError('ERR offset is out of range');
  const former = keyspace.read(key, 'string', now)?.text ?? '';
  if (patch === '') return former.length;
  const text = former.slice(0, offset).padEnd(offset, '\0') + patch + former.slice(offset + patch.length);
  const value = keyspace.change(key, 'string', now);
  if (value === undefined) keyspace.put(key, { type: 'string', text });
  else value.text = text;
  return text.length;
}
