import { rm } from 'node:fs/promises';
import path from 'node:path';
import { findServer } from '../find-server.mjs';
import { freePort } from '../free-port.ts';
import { guardian } from '../guardian.ts';
import { type ServerProcess, spawnServer } from '../server-process.ts';
import { GiveUp, waitUntil } from '../wait-until.ts';

export interface EtcdMember {
  readonly name: string;
  readonly port: number;
  readonly peerPort: number;
}

/** How to start one member: the same for all of its cluster but the name. */
export interface EtcdLaunch {
  readonly member: EtcdMember;
  readonly members: readonly EtcdMember[];
  readonly electionTimeoutMs: number;
  readonly args: readonly string[];
}

/** What a member says of itself, with 64-bit numbers as text. */
export interface EtcdStatus {
  readonly memberId: string;
  /** `0` while there is none. */
  readonly leaderId: string;
  readonly version: string;
  readonly raftTerm: string;
}

/** A private member of etcd on loopback. Its data survive `kill` and `restart`. */
export class EtcdServer implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly name: string;
  readonly dir: string;
  readonly #launch: EtcdLaunch;
  #process: ServerProcess;

  constructor(launch: EtcdLaunch, dir: string, running: ServerProcess) {
    this.#launch = launch;
    this.name = launch.member.name;
    this.port = launch.member.port;
    this.dir = dir;
    this.#process = running;
  }

  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  get running(): boolean {
    return this.#process.running;
  }

  /** SIGSTOP: connections stay open, nothing is answered. */
  async pause(): Promise<void> {
    await this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  /** `kill -9`. What it has acknowledged is in its files. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /**
   * Kills the member if it still runs and starts it again on the same ports. Resolves when it runs and answers; a member
   * of a cluster without a quorum does so without a leader.
   *
   * @param options - `keepData`: default true; `false` starts a single server empty
   */
  async restart({ keepData = true }: { keepData?: boolean } = {}): Promise<void> {
    await this.kill();
    if (!keepData) await rm(path.join(this.dir, 'data'), { recursive: true, force: true });
    this.#process = await spawnMember(this.#launch, this.dir);
    await waitUntil(() => this.status(), { what: `etcd on port ${this.port} to answer`, everyMs: 20 });
  }

  /** Asks this member, and no other. */
  async status(): Promise<EtcdStatus> {
    const response = await fetch(`${this.url}/v3/maintenance/status`, {
      method: 'POST',
      body: '{}',
      signal: AbortSignal.timeout(1_000),
    });
    const body = (await response.json()) as {
      header: { member_id: string };
      leader?: string;
      version: string;
      raftTerm: string;
    };
    const { header, leader = '0', version, raftTerm } = body;
    return { memberId: header.member_id, leaderId: leader, version, raftTerm };
  }

  /** Whether it serves requests: it has, or can reach, a leader. */
  async healthy(): Promise<boolean> {
    if (!this.running) throw new GiveUp(new Error(`etcd did not start; it printed:\n${this.logTail()}`));
    const response = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(1_000) });
    return ((await response.json()) as { health?: string }).health === 'true';
  }

  logTail(lines?: number): string {
    return this.#process.logTail(lines);
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

export async function freeMember(name: string): Promise<EtcdMember> {
  return { name, port: await freePort(), peerPort: await freePort() };
}

/** Starts one member; whether it serves is for `healthy` to say. */
export async function launchEtcd(launch: EtcdLaunch): Promise<EtcdServer> {
  const dir = await (await guardian()).makeDirectory('etcd');
  return new EtcdServer(launch, dir, await spawnMember(launch, dir));
}

async function spawnMember(
  { member, members, electionTimeoutMs, args }: EtcdLaunch,
  directory: string,
): Promise<ServerProcess> {
  const client = `http://127.0.0.1:${member.port}`;
  const peer = `http://127.0.0.1:${member.peerPort}`;
  const all = members.map(({ name, peerPort }) => `${name}=http://127.0.0.1:${peerPort}`).join(',');
  const options: Readonly<Record<string, string>> = {
    name: member.name,
    'data-dir': path.join(directory, 'data'),
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': all,
    'initial-cluster-token': `locks-${members[0]?.peerPort}`,
    'heartbeat-interval': String(Math.max(10, Math.round(electionTimeoutMs / 10))),
    'election-timeout': String(electionTimeoutMs),
    'log-level': 'error',
    logger: 'zap',
  };
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  return await spawnServer({
    command: findServer('etcd'),
    args: [...flags, '--unsafe-no-fsync', ...args],
    directory,
    env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch },
  });
}
