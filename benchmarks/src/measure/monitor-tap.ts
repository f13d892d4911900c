import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Redis } from 'ioredis';
import type { Counted } from './meter.ts';

/**
 * Counts the requests that reach the server during `work` by `MONITOR`, which marks calls inside scripts, and has commands in lower case. It
 * slows the server: not for timed runs.
 */
export async function countRequests<T>(control: Redis, work: () => Promise<T>): Promise<[Counted, T]> {
  const sent = new Map<string, number>();
  const inScripts = new Set<string>();
  const times: number[] = [];
  let total = 0;
  let callsInScripts = 0;
  let counting = false;
  const mark = randomUUID();
  let marked = Promise.withResolvers<void>();
  const tap = await openTap(control, ({ time, source, command, first }) => {
    if (first === mark) {
      counting = !counting;
      marked.resolve();
    } else if (counting && source === 'lua') {
      inScripts.add(command);
      callsInScripts += 1;
    } else if (counting) {
      sent.set(command, (sent.get(command) ?? 0) + 1);
      times.push(time * 1000);
      total += 1;
    }
  });
  tap.once('error', (error) => marked.reject(error));
  tap.once('close', () => marked.reject(new Error('Redis ended the connection that monitors it.')));
  // A failure rejects the next wait for the mark; at this moment nobody may wait for it.
  marked.promise.catch(() => {});
  const passMark = async (): Promise<void> => {
    await control.echo(mark);
    await marked.promise;
    marked = Promise.withResolvers<void>();
  };
  try {
    await passMark();
    const result = await work();
    await passMark();
    const alsoInScripts = [...sent.keys()].filter((name) => inScripts.has(name));
    return [{ sent, total, alsoInScripts, callsInScripts, times }, result];
  } finally {
    marked.promise.catch(() => {});
    tap.destroy();
  }
}

interface MonitorLine {
  /** In seconds on the server's clock. */
  readonly time: number;
  readonly source: string;
  readonly command: string;
  /** The first argument, as it is escaped. */
  readonly first: string | undefined;
}

const LINE = /^\+([\d.]+) \[\d+ ([^\]]*)\] "((?:[^"\\]|\\.)*)"(?: "((?:[^"\\]|\\.)*)")?/;
const CONNECT_MS = 5_000;

/** Opens a connection without ioredis, which fails when a line arrives together with the answer to `MONITOR`. */
async function openTap({ options }: Redis, onLine: (line: MonitorLine) => void): Promise<Socket> {
  const { host = '127.0.0.1', port = 6379, username, password } = options;
  if (options.tls !== undefined) throw new Error('Requests are counted without TLS only.');
  const socket = connect({ host, port, noDelay: true });
  const signal = AbortSignal.timeout(CONNECT_MS);
  try {
    await once(socket, 'connect', { signal });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  let rest = '';
  let missing = password ? 2 : 1;
  const opened = Promise.withResolvers<void>();
  socket.once('close', () => opened.reject(new Error('Redis ended the connection that monitors it.')));
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, time, source = '', command = '', first] = LINE.exec(line) ?? [];
      if (time !== undefined) onLine({ time: Number(time), source, command: command.toLowerCase(), first });
      else if (line.startsWith('-')) opened.reject(new Error(`Redis refused to be monitored: ${line}`));
      else if (line === '+OK' && (missing -= 1) === 0) opened.resolve();
    }
  });
  if (password) {
    const args = ['AUTH', ...(username ? [username] : []), password];
    socket.write(
      `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`,
    );
  }
  socket.write('*1\r\n$7\r\nMONITOR\r\n');
  await opened.promise;
  return socket;
}
