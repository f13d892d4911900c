import path from 'node:path';
import { findServer } from '../find-server.mjs';
import { ManagedServer, type ServerLocation } from '../managed-server.ts';

export interface EtcdMember {
  readonly name: string;
  readonly location: ServerLocation;
  readonly peerPort: number;
}

/** What all members of a cluster are started with. */
export interface EtcdClusterPlan {
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

/**
 * A private member of etcd on loopback. It is ready when it answers, which a member of a cluster does once that has a quorum; only a single
 * server can start without its data.
 */
export class EtcdServer extends ManagedServer {
  protected readonly title = 'etcd';
  protected override readonly data = ['data'];
  readonly name: string;
  readonly #member: EtcdMember;
  readonly #plan: EtcdClusterPlan;

  constructor(member: EtcdMember, plan: EtcdClusterPlan) {
    super(member.location);
    this.name = member.name;
    this.#member = member;
    this.#plan = plan;
  }

  get url(): string {
    return `http://${this.host}:${this.port}`;
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
    const response = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(1_000) });
    return ((await response.json()) as { health?: string }).health === 'true';
  }

  protected override program() {
    const { members, electionTimeoutMs, args } = this.#plan;
    const peer = `http://${this.host}:${this.#member.peerPort}`;
    const options: Readonly<Record<string, string>> = {
      name: this.name,
      'data-dir': path.join(this.dir, 'data'),
      'listen-client-urls': this.url,
      'advertise-client-urls': this.url,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': members
        .map(({ name, peerPort }) => `${name}=http://${this.host}:${peerPort}`)
        .join(','),
      'initial-cluster-token': `locks-${members[0]?.peerPort}`,
      'heartbeat-interval': String(Math.max(10, Math.round(electionTimeoutMs / 10))),
      'election-timeout': String(electionTimeoutMs),
      'log-level': 'error',
      logger: 'zap',
    };
    const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    return {
      command: findServer('etcd'),
      args: [...flags, '--unsafe-no-fsync', ...args],
      env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch },
    };
  }

  protected override async isReady(): Promise<boolean> {
    await this.status();
    return true;
  }
}
