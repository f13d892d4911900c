import { defineHarness, type Faults, type Harness, type HarnessDefinition } from '@locks/core/conformance';
import type { Proxy } from '@locks/test-servers';
import { cutProxies } from './cut-proxies.ts';

/** Servers that run for a harness. */
export interface Served<A> {
  /** How child processes reach them, as JSON in the environment. */
  readonly direct: A;
  /** How this process does, if through proxies. */
  readonly proxied?: A;
  readonly proxies?: readonly Proxy[];
  stop(): Promise<unknown>;
}

/** What is different in each harness of a backend with servers. */
export interface ServedHarness<A, S extends Served<A> = Served<A>>
  extends Pick<HarnessDefinition, 'module' | 'topology' | 'timing' | 'waivers'> {
  readonly name: string;
  /** The name of the environment variable. */
  readonly variable: string;
  /** Imports what starts servers only here: child processes load no more than they need. */
  start(): Promise<S>;
  /** Opens the clients of this process. @returns the name and version of the server, for the matrix */
  prepare(served: S): Promise<string>;
  /**
   * `served`: absent in a child process, which has one backend and no teardown. `prefix`: absent for the default one, and where
   * `hasPrefix` is not set.
   */
  createBackend(
    address: A,
    served: S | undefined,
    prefix?: string,
  ): ReturnType<HarnessDefinition['createBackend']>;
  /** Whether the backend has an option for a text that stands before the names. */
  readonly hasPrefix?: true;
  /** Clients that lose their connections are replaced by new ones. */
  cutOff?(): void;
  /** Ends the clients of this process. */
  end?(): Promise<unknown>;
  faults(direct: () => A, served: () => S | undefined): Omit<Faults, 'cut'>;
}

/** This process speaks to the servers through proxies, child processes directly. */
export function servedHarness<A, S extends Served<A> = Served<A>>(own: ServedHarness<A, S>): Harness {
  const { module, name, topology, timing, waivers, variable } = own;
  let served: S | undefined;
  const direct = (): A => JSON.parse(process.env[variable] ?? 'null') as A;
  const harness = defineHarness({
    module,
    name,
    ...(topology !== undefined && { topology }),
    ...(timing !== undefined && { timing }),
    ...(waivers !== undefined && { waivers }),
    createBackend: () => own.createBackend(served?.proxied ?? direct(), served),
    createBackendUnder: own.hasPrefix
      ? (prefix) => own.createBackend(served?.proxied ?? direct(), served, prefix)
      : 'none',
    async setup() {
      const started = await own.start();
      served = started;
      Object.assign(harness, { server: await own.prepare(started) });
      return {
        env: { [variable]: JSON.stringify(started.direct) },
        teardown: async () => {
          served = undefined;
          await own.end?.();
          await started.stop();
        },
      };
    },
    faults: {
      async cut() {
        own.cutOff?.();
        return cutProxies(served?.proxies ?? []);
      },
      ...own.faults(direct, () => served),
    },
  });
  return harness;
}
