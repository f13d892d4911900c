import { once } from 'node:events';
import { connect } from 'node:net';
import type { Address } from '@locks/core/conformance/proxy';
import { encodeCommand, FrameReader, RedisReplyError, type RespValue } from './resp.ts';

export interface SendOptions {
  readonly password?: string | undefined;
  /** @defaultValue 10 000 */
  readonly timeoutMs?: number;
}

/**
 * Sends commands on a connection of their own, one after the other, and gives their replies; rejects with the first
 * error among them. For a test's control of a server, not for speed.
 */
export async function sendCommands(
  { host, port }: Address,
  commands: readonly (readonly (string | number)[])[],
  { password, timeoutMs = 10_000 }: SendOptions = {},
): Promise<RespValue[]> {
  const all = password === undefined ? commands : [['AUTH', password], ...commands];
  const socket = connect({ host, port, noDelay: true });
  const names = commands.map((command) => command[0]).join(', ');
  const timer = setTimeout(() => {
    socket.destroy(new Error(`${host}:${port} did not answer ${names} within ${timeoutMs} ms.`));
  }, timeoutMs);
  try {
    await once(socket, 'connect');
    const reader = new FrameReader();
    const replies: RespValue[] = [];
    socket.write(all.map(encodeCommand).join(''));
    for await (const chunk of socket) {
      for (const frame of reader.push(chunk as Buffer)) replies.push(frame.value);
      if (replies.length >= all.length) break;
    }
    const refusal = replies.find((reply) => reply instanceof RedisReplyError);
    if (refusal) throw refusal;
    if (replies.length < all.length)
      throw new Error(`${host}:${port} closed the connection before it answered ${names}.`);
    return replies.slice(all.length - commands.length);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

export async function sendCommand(
  address: Address,
  command: readonly (string | number)[],
  options?: SendOptions,
): Promise<RespValue> {
  const [reply] = await sendCommands(address, [command], options);
  return reply ?? null;
}

/** The fields of `INFO`'s reply. */
export function parseInfo(info: RespValue): Record<string, string> {
  const lines = String(info)
    .split('\r\n')
    .filter((line) => line.includes(':'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}
