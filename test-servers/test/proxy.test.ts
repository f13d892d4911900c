import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RedisProxy, type RedisServer, startProxy, startRedis, waitUntil } from '../src/index.ts';

/** A client that shows what happens on the connection. */
class Wire {
  readonly socket: Socket;
  received = '';
  error: NodeJS.ErrnoException | undefined;
  closed = false;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk) => {
      this.received += chunk.toString();
    });
    this.socket.on('error', (error) => {
      this.error = error;
    });
    this.socket.on('close', () => {
      this.closed = true;
    });
  }

  send(...commands: string[]): void {
    this.socket.write(commands.map((command) => `${command}\r\n`).join(''));
  }

  async receives(text: string): Promise<void> {
    await waitUntil(() => this.received.includes(text), {
      what: `${JSON.stringify(text)} in "${this.received}"`,
    });
  }

  async isClosed(): Promise<void> {
    await waitUntil(() => this.closed, { what: 'the connection to close' });
  }
}

let redis: RedisServer;
let proxy: RedisProxy;
let wires: Wire[];

async function client(): Promise<Wire> {
  const wire = new Wire(proxy.port);
  wires.push(wire);
  wire.send('PING');
  await wire.receives('+PONG');
  wire.received = '';
  return wire;
}

async function serverHas(key: string, value: string): Promise<void> {
  await waitUntil(async () => (await redis.command('GET', key)) === value, { what: `${key} = ${value}` });
}

beforeEach(async () => {
  wires = [];
  redis = await startRedis();
  proxy = await startProxy(redis);
});

afterEach(async () => {
  for (const wire of wires) wire.socket.destroy();
  await proxy.stop();
  await redis.stop();
});

describe('the proxy', () => {
  it('passes commands and replies on and counts the commands', async () => {
    const wire = await client();
    proxy.resetCounts();
    wire.send('SET a 1', 'GET a');
    wire.socket.write('*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\n');
    wire.socket.write('a\r\n');
    await wire.receives('+OK\r\n$1\r\n1\r\n:2\r\n$1\r\n2\r\n');
    expect(proxy.countRequests()).toBe(4);
    expect(proxy.countRequests('get')).toBe(2);
    expect(proxy.requestCounts()).toEqual({ SET: 1, GET: 2, INCR: 1 });
    expect(proxy.connections().map(({ requests }) => requests)).toEqual([5]);
  });

  it('passes an end on in both directions', async () => {
    const wire = await client();
    wire.send('QUIT');
    await wire.isClosed();
    const other = await client();
    other.socket.end();
    await other.isClosed();
    await waitUntil(() => proxy.connections().length === 0, { what: 'the proxy to forget them' });
  });

  it('delays one direction by the latency asked for', async () => {
    const wire = await client();
    proxy.latency(150, { direction: 'toClient' });
    const start = performance.now();
    wire.send('SET a 1');
    await serverHas('a', '1');
    expect(wire.received).toBe('');
    await wire.receives('+OK');
    expect(performance.now() - start).toBeGreaterThanOrEqual(145);
  });

  it('blackholes both directions without an error, and cuts the connection when healed', async () => {
    const wire = await client();
    proxy.blackhole();
    wire.send('SET a 1');
    const late = new Wire(proxy.port);
    wires.push(late);
    late.send('SET a 2');
    await waitUntil(() => proxy.countRequests('SET') === 2, { what: 'both commands to reach the proxy' });
    expect(await redis.command('GET', 'a')).toBe(null);
    expect([wire.closed, late.closed, wire.received, late.received]).toEqual([false, false, '', '']);
    await proxy.heal();
    await Promise.all([wire.isClosed(), late.isClosed()]);
    expect(wire.error?.code).toBe('ECONNRESET');
    expect(await redis.command('GET', 'a')).toBe(null);
    await client();
  });

  it('blackholes one direction only', async () => {
    const wire = await client();
    proxy.blackhole({ direction: 'toClient' });
    wire.send('SET a 1');
    await serverHas('a', '1');
    expect(wire.received).toBe('');
    expect(wire.closed).toBe(false);
  });

  it('holds everything back in a stall and delivers it when healed', async () => {
    const wire = await client();
    proxy.stall();
    wire.send('SET a 1', 'GET a');
    await waitUntil(() => proxy.countRequests('GET') === 1, { what: 'the commands to reach the proxy' });
    expect(await redis.command('GET', 'a')).toBe(null);
    await proxy.heal();
    await wire.receives('+OK\r\n$1\r\n1\r\n');
    expect(wire.closed).toBe(false);
  });

  it('loses the reply of a command that ran, and every later one on that connection', async () => {
    const wire = await client();
    const other = await client();
    proxy.loseReplies(({ command }) => command === 'INCR');
    wire.send('ECHO before', 'INCR a', 'ECHO after', 'SET b 1');
    await serverHas('b', '1');
    await serverHas('a', '1');
    await wire.receives('before');
    expect(wire.received).not.toContain('after');
    expect(proxy.lostReplies).toBe(1);
    other.send('ECHO other');
    await other.receives('other');
    await proxy.heal();
    await wire.isClosed();
    expect(other.closed).toBe(false);
  });

  it('loses one reply and cuts the connection', async () => {
    const wire = await client();
    proxy.loseReplies(({ command, args }) => command === 'INCR' && args[0] === 'a', {
      times: 1,
      thenCut: true,
    });
    wire.send('INCR a');
    await wire.isClosed();
    expect(wire.received).toBe('');
    const again = await client();
    again.send('INCR a');
    await again.receives(':2');
  });

  it('resets all connections with RST', async () => {
    const wire = await client();
    proxy.reset();
    await wire.isClosed();
    expect(wire.error?.code).toBe('ECONNRESET');
    expect(proxy.connections()).toEqual([]);
    await client();
  });

  it('refuses new connections while open ones go on', async () => {
    const wire = await client();
    proxy.refuse();
    const late = new Wire(proxy.port);
    wires.push(late);
    await late.isClosed();
    expect(late.error?.code).toBe('ECONNREFUSED');
    wire.send('ECHO still');
    await wire.receives('still');
    await proxy.accept();
    await client();
  });

  it('breaks the subscriber connection alone', async () => {
    const commands = await client();
    const subscriber = await client();
    subscriber.send('SUBSCRIBE news');
    await subscriber.receives('subscribe');
    subscriber.received = '';
    proxy.blackhole({ only: ({ sawSubscribe }) => sawSubscribe });
    commands.send('PUBLISH news one');
    await commands.receives(':1');
    expect(subscriber.received).toBe('');
    await proxy.heal();
    await subscriber.isClosed();
    const again = await client();
    again.send('SUBSCRIBE news');
    await again.receives('subscribe');
    proxy.cut(({ sawSubscribe }) => sawSubscribe);
    await again.isClosed();
    expect(commands.closed).toBe(false);
  });

  it('does not take a pushed message for a reply', async () => {
    const subscriber = await client();
    subscriber.send('SUBSCRIBE news');
    await subscriber.receives('subscribe');
    proxy.loseReplies(({ command }) => command === 'PING');
    await redis.command('PUBLISH', 'news', 'one');
    await subscriber.receives('one');
    subscriber.send('PING');
    await waitUntil(() => proxy.lostReplies === 1, { what: 'the reply to be lost' });
    expect(subscriber.received).not.toContain('pong');
  });

  it('passes a protocol that it does not know through', async () => {
    const raw = await startProxy(redis, { protocol: 'raw' });
    const wire = new Wire(raw.port);
    wires.push(wire);
    wire.send('PING');
    await wire.receives('+PONG');
    expect(raw.countRequests()).toBe(0);
    await raw.stop();
  });
});
