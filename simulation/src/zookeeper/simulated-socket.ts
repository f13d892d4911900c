import { EventEmitter } from 'node:events';
import type { Buffer } from 'node:buffer';
import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { Link } from '../network/link.ts';
import type { LinkStream } from '../network/link-stream.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { Member } from './member.ts';
import { inWords, readRequest } from './request.ts';
import type { ServerConnection } from './server-connection.ts';

/** A reply comes in two pieces so often. */
const SPLIT = 0.25;

export interface SocketInProcess {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly random: SeededRandom;
}

/** A socket of `node:net` as `node-zookeeper-client` uses it: to one server of the ensemble. */
export class SimulatedSocket extends EventEmitter {
  readonly #given: SocketInProcess;
  readonly #stream: LinkStream;
  #connection: ServerConnection | undefined;
  #usedAt: number;
  destroyed = false;

  constructor(given: SocketInProcess, member: Member) {
    super();
    this.#given = given;
    this.#usedAt = given.process.clock.monotonic();
    this.#stream = given.link.openStream(() => this.#fail(new Error('read ECONNRESET')));
    this.#stream.send(
      () => `connects to ${member.name}`,
      () => this.#arriveAt(member),
    );
  }

  setNoDelay(): void {}

  write(bytes: Buffer): boolean {
    if (this.destroyed) return false;
    this.#use();
    this.#stream.send(
      () => this.#describe(bytes),
      () => this.#connection?.received(bytes),
    );
    return true;
  }

  /** Emits `timeout` once, when nothing was sent or received for so long. */
  setTimeout(ms: number, callback: () => void): void {
    this.once('timeout', callback);
    const { process } = this.#given;
    const look = (): void => {
      if (this.destroyed) return;
      const leftMs = this.#usedAt + ms - process.clock.monotonic();
      if (leftMs <= 0) this.emit('timeout');
      else process.setTimeout(look, Math.ceil(leftMs));
    };
    look();
  }

  /** What was sent arrives, and nothing is heard any more. */
  destroy(): void {
    if (this.destroyed) return;
    this.#stream.send(
      () => 'ends the connection',
      () => this.#connection?.close(),
    );
    this.#ended();
  }

  #arriveAt(member: Member): void {
    this.#connection = member.accept({
      send: (kind, what, bytes) => this.#receive(kind, what, bytes),
      end: () =>
        this.#stream.push(
          'lostReplies',
          () => `${member.name} ends the connection`,
          () => this.#ended(),
        ),
    });
    const isOpen = this.#connection !== undefined;
    this.#stream.push(
      'lostReplies',
      () => `${member.name} ${isOpen ? 'accepts' : 'refuses'} the connection`,
      () => (isOpen ? this.emit('connect') : this.#fail(new Error('connect ECONNREFUSED'))),
    );
  }

  #receive(kind: 'reply' | 'watch', what: () => string, bytes: Buffer): void {
    const { random } = this.#given;
    const rate = kind === 'reply' ? 'lostReplies' : 'lostPushes';
    const end = random.chance(SPLIT) ? random.between(1, bytes.length - 1) : bytes.length;
    this.#stream.push(rate, what, () => this.#hear(bytes.subarray(0, end)));
    if (end < bytes.length)
      this.#stream.push(
        rate,
        () => 'the rest of it',
        () => this.#hear(bytes.subarray(end)),
      );
  }

  #hear(bytes: Buffer): void {
    if (this.destroyed) return;
    this.#use();
    this.emit('data', bytes);
  }

  #use(): void {
    this.#usedAt = this.#given.process.clock.monotonic();
  }

  #fail(error: Error): void {
    if (this.destroyed) return;
    this.emit('error', error);
    this.#ended();
  }

  #ended(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#stream.finish();
    const { process } = this.#given;
    process.deliver(process.world.now, () => this.emit('close', false));
  }

  /** For a timeline: the first message opens a session. */
  #describe(bytes: Buffer): string {
    if (this.#connection?.session === 0) return 'asks for a session';
    return inWords(readRequest(bytes.subarray(4)).request);
  }
}
