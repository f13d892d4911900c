import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { RedisCommand, RedisPort } from '@locks/redis-protocol';
import type { World } from '../kernel/world.ts';
import type { Link } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { viewOf } from '../redis/lock-view.ts';
import type { LuaScripts } from '../redis/lua-scripts.ts';
import { Refinement, RefinementError } from '../redis/refinement.ts';
import type { ScriptCall } from '../redis/script-step.ts';
import { SimulatedRedisError, UnknownCommandError } from '../redis/reply.ts';
import type { ClientReply, SimulatedRedis } from '../redis/simulated-redis.ts';
import { SharedConnection } from '../redis/shared-connection.ts';
import { SimulatedRedisPort } from '../redis/simulated-redis-port.ts';
import type { ApplicationAct, Plan, StoreFaultPlan } from '../workload/plan.ts';
import { RedisServers } from './redis-servers.ts';
import type { SimulatedStore } from './simulated-store.ts';
import { leftInWords } from './users-in-words.ts';

/** A client connects again so long after it lost its connection, at most, in milliseconds. */
const RECONNECTS_WITHIN_MS = 200;
const PREFIX = 'lock::';
/** What the random numbers are for that choose them. */
const KNOWN_SCRIPTS = 1_000;
const TOKEN_KEY = /^locks:token:/;

/** What an application sends by the client of the locks: at once, and at its end. */
const COMMANDS_OF: Readonly<Record<ApplicationAct, readonly RedisCommand[]>> = {
  exec: [['MULTI'], ['EXEC']],
  discard: [['MULTI'], ['DISCARD']],
  'forget multi': [['MULTI']],
  subscribe: [
    ['SUBSCRIBE', 'news'],
    ['UNSUBSCRIBE', 'news'],
  ],
  select: [
    ['SELECT', '1'],
    ['SELECT', '0'],
  ],
  'script flush': [['SCRIPT', 'FLUSH']],
  reset: [['RESET']],
};

interface RedisClient {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly port: SimulatedRedisPort;
  /** The connection by which it sends commands, and how many the client had lost when it opened. */
  connection: SharedConnection;
  reconnects: number;
}

/** What a simulated Redis is made from. */
export interface NetworkedRedisOptions {
  readonly plan: Plan;
  readonly drift: number;
  readonly lua: LuaScripts;
  /** By their hashes, in kebab case. */
  readonly scriptNames: ReadonlyMap<string, string>;
  /** Of the scripts, some of which the server knows from clients of before. */
  readonly sources: readonly string[];
}

/** A simulated Redis, which runs the real scripts, and the network to it. */
export class NetworkedRedis implements SimulatedStore {
  readonly name = 'redis';
  readonly #world: World;
  readonly #servers: RedisServers;
  readonly #options: NetworkedRedisOptions;
  readonly #clients: RedisClient[] = [];
  #awayUntil = 0;
  #migratesUntil = 0;
  /** Keys that were lost without the others of their locks. */
  readonly #evicted = new Set<string>();
  /** No single key was lost or written without the others. */
  #isWhole = true;

  constructor(world: World, options: NetworkedRedisOptions) {
    const { plan, lua, drift } = options;
    const hasReplica = plan.storeFaults.some(({ kind }) => kind === 'failover');
    this.#world = world;
    this.#options = options;
    this.#servers = new RedisServers(world, lua, drift, hasReplica ? plan.replicaLagMs : undefined);
    const random = world.random.fork(KNOWN_SCRIPTS);
    for (const source of options.sources)
      if (random.chance(plan.knownScripts)) this.#servers.master.execute(['SCRIPT', 'LOAD', source]);
  }

  get isAway(): boolean {
    return this.#world.now < this.#awayUntil;
  }

  goAway(ms: number): void {
    this.#awayUntil = this.#world.now + ms;
  }

  suffer(fault: StoreFaultPlan): boolean {
    const { master } = this.#servers;
    switch (fault.kind) {
      case 'restart': {
        const hasLost = !fault.keepsData && master.keys().length > 0;
        master.restart({ keepData: fault.keepsData });
        this.#connectionsEnd(fault.downMs);
        return hasLost;
      }
      case 'failover': {
        const hasLost = this.#servers.failOver();
        this.#connectionsEnd(fault.downMs);
        return hasLost;
      }
      case 'slot migration':
        // What is released key by key is half done for a time.
        this.#isWhole = false;
        this.#migratesUntil = this.#world.now + fault.ms;
        return false;
      case 'eviction': {
        // One key may say what another does not any more: the rules know no such state.
        this.#isWhole = false;
        const evicted = master.evict((count) => this.#world.random.between(0, count - 1));
        if (evicted !== undefined) this.#evicted.add(evicted);
        return evicted !== undefined;
      }
      case 'script flush':
        master.execute(['SCRIPT', 'FLUSH']);
        return false;
      default:
        throw new Error(`a simulated Redis has no ${fault.kind}`);
    }
  }

  backendIn(process: SimulatedProcess, link: Link, { createRedisBackend }: LoadedLocks): LockBackend {
    const port = new SimulatedRedisPort({
      server: () => this.#servers.master,
      request: async (command, execute) => {
        // A client library knows no deadline: a connection that gives no answer is found broken at some time.
        const answer = link.request(
          () => describe(command, this.#options.scriptNames),
          Infinity,
          () => (command[0] === 'SUBSCRIBE' ? execute() : this.#onConnection(client, command)),
          command[0] === 'SUBSCRIBE' ? 'messages' : 'requests',
        );
        try {
          return (await answer).value;
        } finally {
          port.reconnects = link.reconnects;
        }
      },
      message: (deliver) => link.push(() => 'a message', deliver),
    });
    const client: RedisClient = { process, link, port, connection: this.#connect(link), reconnects: 0 };
    this.#clients.push(client);
    link.onReset = () => this.#connectAgain(client);
    const { maxPollMs } = this.#options.plan;
    return createRedisBackend(port satisfies RedisPort, { maxPollMs });
  }

  useClient(process: SimulatedProcess, act: ApplicationAct, ms: number): void {
    const client = this.#clients.find((one) => one.process === process);
    if (client === undefined) return;
    this.#isWhole &&= act !== 'select';
    const [begin, end] = COMMANDS_OF[act];
    const send = (command: RedisCommand): void => {
      const what = (): string => `${command[0]} of the application`;
      client.link.request(what, Infinity, () => this.#onConnection(client, command)).catch(() => undefined);
    };
    if (begin !== undefined) send(begin);
    if (end !== undefined) process.setTimeout(() => send(end), ms);
  }

  /** An application that has left a connection in another state closes it. */
  heal(): void {
    for (const { link, connection } of this.#clients) if (!connection.isPlain) link.reset();
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    const { master } = this.#servers;
    const lock = `${PREFIX}${resource}`;
    const held = String(master.execute(['GET', lock]));
    if (!held.startsWith('*')) return held.startsWith(`${acquisitionId}|`) ? 'exclusive' : undefined;
    const share = String(master.execute(['HGET', `{${lock}}:h`, acquisitionId]));
    const [from, ttl] = share.split('|').map(Number) as [number, number];
    if (!(this.#servers.micros() / 1_000 < from + ttl)) return undefined;
    return held.startsWith('*0|') ? 'shared' : 'permit';
  }

  /** What Redis keeps beside locks has an end of its own, or is the highest token: it is no leftover. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    const { master, micros } = this.#servers;
    const now = Math.floor(micros() / 1_000);
    const left = this.#options.plan.resources.flatMap(({ name }) => {
      const { record } = viewOf(master, `${PREFIX}${name}`, '', now);
      return leftInWords(name, record, isMeant);
    });
    // Holders of a lock that were evicted come back with the next share, without an end until the name is used again.
    return [
      ...left,
      ...endless(master)
        .filter((key) => !this.#evicted.has(key))
        .map(inWords),
    ];
  }

  /** Executes a command on the connection of a client, in the state in which the application left it. */
  #onConnection(client: RedisClient, command: RedisCommand): ClientReply {
    const { link } = client;
    if (client.reconnects !== link.reconnects) {
      client.reconnects = link.reconnects;
      client.connection = this.#connect(link);
    }
    const { connection } = client;
    const server = (): SimulatedRedis => this.#servers.database(connection.database);
    return connection.execute(
      command,
      () => describe(command, this.#options.scriptNames),
      () => server().check(command),
      () => this.#execute(command, () => server().execute(command)),
    );
  }

  #connect(link: Link): SharedConnection {
    return new SharedConnection((what) => link.onLateCopy(what));
  }

  #execute(command: RedisCommand, execute: () => ClientReply): ClientReply {
    if (this.#world.now < this.#migratesUntil && usesSeveralKeys(command))
      throw new SimulatedRedisError('TRYAGAIN Multiple keys request during rehashing of slot');
    const call = this.#options.plan.refines && this.#isWhole ? this.#scriptCall(command) : undefined;
    try {
      return call === undefined ? execute() : this.#refined(call, execute);
    } catch (error) {
      const isFault = error instanceof SimulatedRedisError && !(error instanceof UnknownCommandError);
      if (isFault && error.message.startsWith('ERR '))
        this.#world.violated(
          'scripts',
          `${describe(command, this.#options.scriptNames)} failed: ${error.message}`,
        );
      throw error;
    } finally {
      this.#servers.hasExecuted();
    }
  }

  #refined(call: ScriptCall, execute: () => ClientReply): ClientReply {
    const { master, micros } = this.#servers;
    // In its last millisecond an exclusive hold is still held here, and not in the rules.
    if (call.keys.some((key) => master.execute(['PTTL', key]) === 0)) return execute();
    try {
      return new Refinement(master, micros).run(call, execute);
    } catch (error) {
      if (!(error instanceof RefinementError)) throw error;
      this.#world.violated('refinement', `${call.script} and the rules differ: ${error.message}`);
      throw new SimulatedRedisError('ERR the script differs from the rules');
    }
  }

  /** The call of a script that the server knows, or of a command that does the same. */
  #scriptCall(command: readonly string[]): ScriptCall | undefined {
    const { scriptNames } = this.#options;
    const released = this.#releasedBy(command);
    if (released !== undefined) return released;
    const [name, sha1 = '', count = '', ...rest] = command;
    const isKnown =
      name === 'EVAL' ||
      (name === 'EVALSHA' && String(this.#servers.master.execute(['SCRIPT', 'EXISTS', sha1])) === '1');
    const script = scriptNames.get(sha1);
    if (!isKnown || script === undefined) return undefined;
    const keys = Number(count);
    return { script, keys: rest.slice(0, keys), args: rest.slice(keys) };
  }

  /** The release that a command makes which deletes a key by its value: where it deletes nothing, it is none. */
  #releasedBy([name = '', lock = '', ...rest]: readonly string[]): ScriptCall | undefined {
    const value = rest.at(-1) ?? '';
    if ((name !== 'DELEX' && name !== 'DELIFEQ') || this.#servers.master.execute(['GET', lock]) !== value)
      return undefined;
    return { script: 'release', keys: [lock, '', `{${lock}}:q`], args: [value.split('|')[0] ?? '', ''] };
  }

  /** All connections break, and the server cannot be reached for a time. */
  #connectionsEnd(downMs: number): void {
    this.goAway(downMs);
    for (const { link } of this.#clients) link.reset();
  }

  #connectAgain({ process, port }: RedisClient): void {
    port.loseSubscriptions();
    const connect = (): void => {
      // What fails is tried again, as clients do.
      port.resubscribe().catch(() => later());
    };
    const later = (): void =>
      void process.setTimeout(connect, 1 + process.random.next() * RECONNECTS_WITHIN_MS);
    later();
  }
}

function usesSeveralKeys([name, , count]: readonly string[]): boolean {
  return (name === 'EVAL' || name === 'EVALSHA') && Number(count) > 1;
}

function describe(
  [name = '', sha1 = '', count = '', ...rest]: readonly string[],
  names: ReadonlyMap<string, string>,
): string {
  if (name !== 'EVALSHA' && name !== 'EVAL') return name;
  const args = rest.slice(Number(count)).join(' ');
  return `${names.get(sha1) ?? 'script'} ${rest[0]} ${args}`;
}

/** Keys without an end, beside tokens and the marker of the layout: they would stay for ever. */
function endless(server: SimulatedRedis): string[] {
  const keys = server.keys().filter((key) => !TOKEN_KEY.test(key) && !key.endsWith('{layout}'));
  return keys.filter((key) => server.peek(key)?.expiresAt === undefined);
}

function inWords(endless: string): string {
  return `the key ${endless}, which has no end,`;
}
