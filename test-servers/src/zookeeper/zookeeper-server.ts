import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findServer } from '../find-server.mjs';
import { type ServerProcess, spawnServer } from '../server-process.ts';
import { GiveUp, waitUntil } from '../wait-until.ts';
import { fourLetterWord, parseReport } from './four-letter-word.ts';

/** How the server takes part: `standalone`, or as the leader or a follower of an ensemble. */
export type ZooKeeperMode = 'standalone' | 'leader' | 'follower';

export interface ZooKeeperPlace {
  readonly port: number;
  readonly dir: string;
  /** Lines of `zoo.cfg` beyond those that all servers have. */
  readonly config: readonly string[];
  /** In an ensemble. */
  readonly id?: number;
}

const CLASS_PATH = ['/usr/share/java/zookeeper.jar', '/usr/share/java/slf4j-simple.jar'].join(path.delimiter);
const JAVA_FLAGS = [
  // Three of these run side by side with the tests.
  '-Xms32m',
  '-Xmx256m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dzookeeper.admin.enableServer=false',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
];
const COMMON = [
  'tickTime=200',
  'minSessionTimeout=400',
  'maxSessionTimeout=60000',
  'clientPortAddress=127.0.0.1',
  'maxClientCnxns=0',
  '4lw.commands.whitelist=*',
  'forceSync=no',
];

/** A private server on loopback, alone or a member of an ensemble. */
export class ZooKeeperServer implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly dir: string;
  /** In an ensemble: 1, 2, 3. */
  readonly id: number;
  readonly #place: ZooKeeperPlace;
  #process: ServerProcess | undefined;

  constructor(place: ZooKeeperPlace) {
    this.#place = place;
    this.port = place.port;
    this.dir = place.dir;
    this.id = place.id ?? 1;
  }

  /** `host:port`, as a connect string wants it. */
  get address(): string {
    return `${this.host}:${this.port}`;
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  /** Starts the process; see {@link untilReady}. */
  async launch(): Promise<void> {
    const { dir, port, config, id } = this.#place;
    const file = path.join(dir, 'zoo.cfg');
    await writeFile(file, [...COMMON, `dataDir=${dir}`, `clientPort=${port}`, ...config, ''].join('\n'));
    if (id !== undefined) await writeFile(path.join(dir, 'myid'), `${id}\n`);
    this.#process = await spawnServer({
      command: findServer('java'),
      args: [...JAVA_FLAGS, '-cp', CLASS_PATH, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', file],
      directory: dir,
    });
  }

  /** Resolves when the server serves clients: `ruok` is answered too early. */
  async untilReady(timeoutMs = 30_000): Promise<void> {
    const ready = async (): Promise<boolean> => {
      if (!this.running) {
        throw new GiveUp(new Error(`ZooKeeper did not start on port ${this.port}:\n${this.logTail()}`));
      }
      return (await this.mode()) !== undefined;
    };
    await waitUntil(ready, { what: `ZooKeeper on port ${this.port} to be ready`, timeoutMs, everyMs: 20 });
  }

  /** `undefined` while it serves nobody. */
  async mode(): Promise<ZooKeeperMode | undefined> {
    const report = parseReport(await fourLetterWord(this, 'srvr', 1_000).catch(() => ''));
    return report['Mode'] as ZooKeeperMode | undefined;
  }

  /** The answer to a four letter word: `srvr`, `mntr`, `wchs`, `dump`, … */
  async report(word: string): Promise<string> {
    return await fourLetterWord(this, word);
  }

  /** A figure of `mntr`, as `watch_count` or `packets_received`. */
  async figure(name: string): Promise<number> {
    return Number(parseReport(await this.report('mntr'))[name.startsWith('zk_') ? name : `zk_${name}`]);
  }

  /** SIGSTOP: connections stay open, nothing is answered. */
  async pause(): Promise<void> {
    await this.#process?.pause();
  }

  resume(): void {
    this.#process?.resume();
  }

  /** `kill -9`. Its data stay. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Kills the server if it still runs, and starts it again on the same port with its data. */
  async restart(): Promise<void> {
    await this.kill();
    await this.launch();
    await this.untilReady();
  }

  /** What the server printed last. */
  logTail(lines?: number): string {
    return this.#process?.logTail(lines) ?? '';
  }

  /** Ends it, whatever its state, and deletes its directory. May be called again. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.dir, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
