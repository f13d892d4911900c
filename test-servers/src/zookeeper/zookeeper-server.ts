import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findServer, searchPath } from '../find-server.mjs';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';
import { fourLetterWord, parseReport } from './four-letter-word.ts';

/** How the server takes part: `standalone`, or as the leader or a follower of an ensemble. */
export type ZooKeeperMode = 'standalone' | 'leader' | 'follower';

export interface ZooKeeperOptions {
  /** Lines of `zoo.cfg` behind those that all servers have, in whose place they count: `['tickTime=2000']`. */
  readonly config?: readonly string[];
}

export interface EnsembleMember extends Required<ZooKeeperOptions> {
  /** 1, 2, 3 */
  readonly id: number;
}

const CLASS_PATH = ['/usr/share/java/zookeeper.jar', '/usr/share/java/slf4j-simple.jar'].join(path.delimiter);
/** The jars of another version (`--server zookeeper-3.9`), beside the programs. */
const JARS = 'zookeeper-jars';
const JAVA_FLAGS = [
  // Small, because three of these run beside the tests.
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

/** Starts one ZooKeeper server on a free port of 127.0.0.1. Its session timeouts go from 0.4 to 60 seconds. */
export async function startZookeeper({ config = [] }: ZooKeeperOptions = {}): Promise<ZooKeeperServer> {
  return await startServer(
    { label: 'zookeeper' },
    (location) => new ZooKeeperServer(location, { id: 1, config }),
  );
}

/** A private server on loopback, alone or a member of an ensemble. */
export class ZooKeeperServer extends ManagedServer {
  protected readonly title = 'ZooKeeper';
  protected override readonly data = ['version-2'];
  /** The id in an ensemble: 1, 2, 3. */
  readonly id: number;
  readonly #member: EnsembleMember | undefined;

  constructor(location: ServerLocation, member?: EnsembleMember) {
    super(location);
    this.#member = member;
    this.id = member?.id ?? 1;
  }

  /** `host:port`, as a connect string wants it. */
  get address(): string {
    return `${this.host}:${this.port}`;
  }

  /** `undefined` while the server serves no clients. */
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

  get #file(): string {
    return path.join(this.dir, 'zoo.cfg');
  }

  protected override async prepare(): Promise<void> {
    const own = [`dataDir=${this.dir}`, `clientPort=${this.port}`];
    await writeFile(this.#file, [...COMMON, ...own, ...(this.#member?.config ?? []), ''].join('\n'));
    if (this.#member) await writeFile(path.join(this.dir, 'myid'), `${this.id}\n`);
  }

  protected override program() {
    const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
    return { command: findServer('java'), args: [...JAVA_FLAGS, '-cp', classPath(), main, this.#file] };
  }

  /** `ruok` is answered before the server serves clients. */
  protected override async isReady(): Promise<boolean> {
    return (await this.mode()) !== undefined;
  }
}

function classPath(): string {
  const jars = searchPath()
    .map((directory) => path.join(directory, JARS))
    .find((directory) => existsSync(directory));
  if (jars === undefined) return CLASS_PATH;
  // The manifests of Debian's jars name those that the system has: the two that make ZooKeeper come first.
  return ['zookeeper-jute.jar', 'zookeeper.jar', '*'].map((jar) => path.join(jars, jar)).join(path.delimiter);
}
