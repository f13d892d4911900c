import type { Address } from '@locks/core/conformance/proxy';
import type { HistoryMode } from '@locks/history';
import { type Proxy, startProxy, waitUntil } from '@locks/test-servers';
import type { FaultyServer } from '../fault-lab/fault-lab.ts';
import type { NatMap } from '../harnesses/redis/address.ts';
import type { Workload } from './workloads.ts';

/** A server that the lab breaks. */
export interface LabServer extends FaultyServer {
  readonly running: boolean;
  restart(options?: { keepData: boolean }): Promise<void>;
}

/** Servers that elect a leader or master among them. */
export interface LabElection {
  leader(): Promise<LabServer>;
  follower(): Promise<LabServer>;
  /** Resolves when another one leads. */
  untilReplaced(leader: LabServer): Promise<unknown>;
  /** Resolves when all take part again. */
  untilReady?(): Promise<unknown>;
}

/** What runs for one backend of the lab. */
export interface LabDeployment extends AsyncDisposable {
  /**
   * The address for the next worker, and the proxies between it and the servers, where it has any.
   *
   * @param host - where the worker reaches the proxies, if not at 127.0.0.1
   */
  connect(host?: string): Promise<{ readonly address: unknown; readonly proxies: readonly Proxy[] }>;
  /** The server, where there is one alone; where a pooler stands before it, the pooler. */
  readonly server?: LabServer;
  readonly election?: LabElection;
}

/** What a nemesis wants of a deployment. */
export interface DeploymentWish {
  /** The server admits about {@link FEW_CONNECTIONS} connections. */
  readonly fewConnections: boolean;
  /** The server writes what it acknowledges to its disk. */
  readonly onDisk: boolean;
}

/** Enough for the workers of the lab, and quickly taken by strangers. */
export const FEW_CONNECTIONS = 64;

/** What the lab knows of a backend. */
export interface LabBackend {
  readonly modes: readonly HistoryMode['kind'][];
  readonly hasTokens: boolean;
  /** Whose default export has `locks()`, as a `FaultLab`. */
  readonly module: string;
  /** Of the locks, for workers. Holds end `ttlMs` after their client was last heard of. */
  readonly options: object;
  readonly ttlMs: number;
  /**
   * Whether the server frees a hold when the connection of its holder ends, which a holder that stands still then has not read yet
   * (docs/spec.md §8.3).
   */
  readonly endsWithConnection?: boolean;
  /** Whether its lab makes backends for renewal threads. */
  readonly hasThreads?: boolean;
  /** Whether its server can come back without its data. */
  readonly canLoseData?: boolean;
  /** Megabytes of a disk that the server starts on, and that is then filled. Absent: it keeps nothing on a disk that the lab can fill. */
  readonly diskMb?: number;
  /** Whether the clock of its server can be set, by a library that is loaded into it. */
  readonly canSetClock?: boolean;
  /** What a stranger sends to take one of the server's connections. Absent: the server has no limit, or the lab cannot reach it. */
  readonly stranger?: Buffer;
  /** What is missing on this machine for its workers, in a sentence. */
  missing?(): string | undefined;
  /** The program of its workers and its arguments, in another language than this one. Their setup is the last argument. */
  readonly worker?: readonly [string, ...string[]];
  /** Only these workloads, where not all that its modes allow. */
  readonly workloads?: readonly Workload[];
  deploy(wish: DeploymentWish): Promise<LabDeployment>;
}

function labModule(path: string): string {
  return new URL(`../../${path}`, import.meta.url).href;
}

/** One server, which every worker reaches through a proxy of its own. `settings` are its options under a wish. */
export function single(
  path: string,
  settings: (wish: DeploymentWish) => object | undefined = () => undefined,
): Pick<LabBackend, 'module' | 'deploy'> {
  const module = labModule(path);
  return {
    module,
    async deploy(wish) {
      await using stack = new AsyncDisposableStack();
      const { default: Lab } = (await import(module)) as {
        default: new () => AsyncDisposable & { server(settings?: object): Promise<LabServer> };
      };
      const lab = stack.use(new Lab());
      const server = await lab.server(settings(wish));
      const owned = stack.move();
      return {
        server,
        async connect(host) {
          const { proxies, at } = await proxiesOf(owned, [server], host);
          return { address: at[0], proxies };
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  };
}

/** Servers that are started together, and what workers get of their addresses. */
interface Group {
  readonly servers: readonly Address[];
  address(at: readonly Address[], natMap: NatMap): unknown;
  /** Where one of them stands before the others. */
  readonly server?: LabServer;
  readonly election?: LabElection;
}

/** Several servers, which every worker reaches through proxies of its own. */
export function several<S extends AsyncDisposable>(
  path: string,
  start: () => Promise<S>,
  groupOf: (started: S, owner: AsyncDisposableStack) => Group | Promise<Group>,
): Pick<LabBackend, 'module' | 'deploy'> {
  return {
    module: labModule(path),
    async deploy() {
      await using stack = new AsyncDisposableStack();
      const { servers, address, ...group } = await groupOf(stack.use(await start()), stack);
      const owned = stack.move();
      return {
        ...group,
        async connect(host) {
          const { proxies, at, natMap } = await proxiesOf(owned, servers, host);
          return { address: address(at, natMap), proxies };
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  };
}

/** Servers one of which leads at a time. */
export function electionOf<S extends LabServer>(
  members: readonly S[],
  leader: () => Promise<S>,
  more: Partial<LabElection> = {},
): LabElection {
  return {
    leader,
    async follower() {
      const leading = await leader();
      return found(members.find((member) => member !== leading));
    },
    untilReplaced: (old) => waitUntil(async () => (await leader()) !== old, { what: 'another leader' }),
    ...more,
  };
}

/** A proxy before each of some servers, with their addresses, and the map from those that the servers announce. */
async function proxiesOf(
  owner: AsyncDisposableStack,
  servers: readonly Address[],
  host?: string,
): Promise<{ proxies: Proxy[]; at: Address[]; natMap: NatMap }> {
  const proxies = await Promise.all(
    servers.map(async (server) => owner.use(await startProxy(server, { protocol: 'raw' }))),
  );
  const at = proxies.map((proxy) => ({ host: host ?? proxy.host, port: proxy.port }));
  const natMap = Object.fromEntries(
    servers.map((server, index) => [`${server.host}:${server.port}`, at[index] as Address]),
  );
  return { proxies, at, natMap };
}

export function found<T>(one: T | undefined): T {
  if (one === undefined) throw new Error('There is no such server.');
  return one;
}
