import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { fetchedFolder } from '../fetched-kinds.mjs';
import { ManagedServer, type ServerLocation } from '../managed-server.ts';

export interface NatsMember {
  readonly name: string;
  readonly location: ServerLocation;
  readonly monitorPort: number;
  readonly routePort: number;
}

/** What all members of a cluster are started with. */
export interface NatsPlan {
  readonly members: readonly NatsMember[];
  readonly args: readonly string[];
  readonly jetStream: boolean;
}

/** What `/jsz` says, as far as it is of use here. */
interface JetStreamReport {
  readonly meta_cluster?: { readonly leader?: string };
  readonly account_details?: readonly {
    readonly stream_detail?: readonly {
      readonly name: string;
      readonly cluster?: { readonly leader?: string };
    }[];
  }[];
}

/**
 * A private NATS server with JetStream on loopback. It is ready when it answers clients; a member of a cluster serves JetStream once a
 * leader was elected.
 */
export class NatsServer extends ManagedServer {
  protected readonly title = 'NATS';
  protected override readonly data = ['jetstream'];
  readonly name: string;
  readonly #member: NatsMember;
  readonly #plan: NatsPlan;

  constructor(member: NatsMember, plan: NatsPlan) {
    super(member.location);
    this.name = member.name;
    this.#member = member;
    this.#plan = plan;
  }

  get url(): string {
    return `nats://${this.host}:${this.port}`;
  }

  /** The name of the member that leads the cluster, as this one knows it. */
  async metaLeader(): Promise<string | undefined> {
    return (await this.#report('')).meta_cluster?.leader;
  }

  /** The name of the member that leads a stream, as this one knows it; `undefined` while there is none. */
  async streamLeader(stream: string): Promise<string | undefined> {
    const { account_details: accounts = [] } = await this.#report('?streams=true&accounts=true');
    const streams = accounts.flatMap(({ stream_detail: details = [] }) => details);
    return streams.find(({ name }) => name === stream)?.cluster?.leader;
  }

  async #report(query: string): Promise<JetStreamReport> {
    const response = await fetch(`http://${this.host}:${this.#member.monitorPort}/jsz${query}`, {
      signal: AbortSignal.timeout(1_000),
    });
    return (await response.json()) as JetStreamReport;
  }

  protected override program() {
    const { members, args, jetStream } = this.#plan;
    const { monitorPort, routePort } = this.#member;
    const route = (port: number) => `nats://${this.host}:${port}`;
    const cluster = [
      ...['--cluster_name', `locks-${members[0]?.routePort}`, '--cluster', route(routePort)],
      ...['--routes', members.map((member) => route(member.routePort)).join(',')],
    ];
    return {
      command: path.join(fetchedFolder('nats'), 'bin/nats-server'),
      args: [
        ...['-a', this.host, '-p', String(this.port), '-m', String(monitorPort), '-n', this.name],
        ...(jetStream ? ['-js', '-sd', this.dir] : []),
        ...(members.length > 1 ? cluster : []),
        ...args,
      ],
    };
  }

  /** A server greets each client with its name. */
  protected override async isReady(): Promise<boolean> {
    const socket = connect({ port: this.port, host: this.host, timeout: 2_000 });
    socket.once('timeout', () => socket.destroy(new Error('no greeting')));
    try {
      const [greeting] = (await once(socket, 'data')) as [Buffer];
      return greeting.includes(`"server_name":"${this.name}"`);
    } finally {
      socket.destroy();
    }
  }
}
