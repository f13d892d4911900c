import { type ChildProcess, execFile, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { readlink } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import type { Address, Direction } from '@locks/core/conformance/proxy';
import { waitUntil } from '../wait-until.ts';

const run = promisify(execFile);

/** Nobody has this address: what is sent to it is dropped by whoever receives it. */
const NOBODY = '02:00:00:00:00:01';
/** 198.18.0.0/15 is meant for tests of networks. It has room for so many links. */
const LINKS = 1 << 15;
/** Waits until somebody has put the other end of its link there, and runs a program. */
const START = `until ip link show eth0 >/dev/null 2>&1; do sleep 0.01; done
ip link set lo up && ip address add "$0" dev eth0 && ip link set eth0 up && exec "$@"`;

/**
 * The network namespace of one process, with one link to this machine, on which packets can be lost. It ends with the process.
 */
export class ProcessNetwork implements AsyncDisposable {
  /** Where the process reaches this machine. */
  readonly host: string;
  /** Where this machine reaches the process. */
  readonly #guest: string;
  readonly #listeners: Server[] = [];
  readonly #sockets = new Set<Socket>();
  #child: ChildProcess | undefined;

  /** See {@link canSeparateNetworks}. */
  constructor() {
    [this.host, this.#guest] = freeAddresses();
  }

  /**
   * Starts the process. It runs when its network is there.
   *
   * @param servers - of 127.0.0.1: the process reaches them at {@link host}, under the same ports
   */
  async start(
    [command, ...args]: readonly [string, ...string[]],
    options: SpawnOptions,
    servers: readonly Address[] = [],
  ): Promise<ChildProcess> {
    const own = await readlink('/proc/self/ns/net');
    const child = spawn(
      'unshare',
      ['--net', 'sh', '-c', START, `${this.#guest}/30`, command, ...args],
      options,
    );
    this.#child = child;
    try {
      if (child.pid === undefined) throw (await once(child, 'error'))[0];
      await waitUntil(async () => (await readlink(`/proc/${child.pid}/ns/net`)) !== own, {
        what: 'a network namespace',
      });
      const ends = ['name', this.#link, 'type', 'veth', 'peer', 'name', 'made', 'netns', `${child.pid}`];
      await run('ip', ['link', 'add', ...ends]);
      await run('ip', ['address', 'add', `${this.host}/30`, 'dev', this.#link]);
      await run('ip', ['link', 'set', this.#link, 'up']);
      for (const server of servers) await this.#relay(server);
      await this.#inside('link', 'set', 'made', 'name', 'eth0');
      return child;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Packets are lost, without an error for anybody: of both directions, or of one. */
  async lose(direction?: Direction): Promise<void> {
    if (direction !== 'toClient') await this.#neighbour('toServer', 'permanent');
    if (direction !== 'toServer') await this.#neighbour('toClient', 'permanent');
  }

  /** Packets arrive again, and those that were lost are sent again by TCP. */
  async heal(): Promise<void> {
    await this.#neighbour('toServer', 'failed');
    await this.#neighbour('toClient', 'failed');
  }

  /** Kills the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#child?.kill('SIGKILL');
    for (const listener of this.#listeners) listener.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  get #link(): string {
    return `locks${this.#child?.pid}`;
  }

  /** Sends the packets of a direction to nobody; or asks anew who has the address of its receiver. */
  async #neighbour(direction: Direction, state: 'permanent' | 'failed'): Promise<void> {
    // A process that has ended has no link any more.
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) return;
    const entry = ['lladdr', NOBODY, 'nud', state];
    if (direction === 'toServer') await this.#inside('neigh', 'replace', this.host, ...entry, 'dev', 'eth0');
    else await run('ip', ['neigh', 'replace', this.#guest, ...entry, 'dev', this.#link]);
  }

  /** Runs `ip` in the namespace. */
  async #inside(...args: readonly string[]): Promise<void> {
    await run('nsenter', [`--net=/proc/${this.#child?.pid}/ns/net`, 'ip', ...args]);
  }

  async #relay({ host, port }: Address): Promise<void> {
    const listener = createServer((client) => {
      client.setNoDelay(true);
      const server = connect({ host, port, noDelay: true });
      this.#pass(client, server);
      this.#pass(server, client);
    });
    this.#listeners.push(listener);
    listener.unref();
    listener.listen(port, this.host);
    await once(listener, 'listening');
  }

  #pass(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('error', () => undefined);
    from.once('close', () => {
      this.#sockets.delete(from);
      to.resetAndDestroy();
    });
    from.pipe(to);
  }
}

/** Needs Linux, root, `unshare`, `nsenter` and `ip`, and a kernel that makes network namespaces and links between them. */
export async function canSeparateNetworks(): Promise<boolean> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  try {
    await run('nsenter', ['--version']);
    await using network = new ProcessNetwork();
    const child = await network.start(['true'], { stdio: 'ignore' });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code === 0;
  } catch {
    return false;
  }
}

let next = process.pid;

/** Two addresses of a link that no link of this machine has. */
function freeAddresses(): [host: string, guest: string] {
  const taken = new Set(Object.values(networkInterfaces()).flatMap((all) => all?.map((one) => one.address)));
  for (let tries = 0; tries < LINKS; tries += 1) {
    next = (next + 1) % LINKS;
    const [host, guest] = [1, 2].map((end) => {
      const bits = next * 4 + end;
      return `198.${18 + (bits >> 16)}.${(bits >> 8) & 255}.${bits & 255}`;
    }) as [string, string];
    if (!taken.has(host)) return [host, guest];
  }
  throw new Error('Every link of 198.18.0.0/15 is taken.');
}
