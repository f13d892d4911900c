import { Buffer } from 'node:buffer';
import type { LockBackend, LockMode } from '@locks/core';
import type { MysqlBackendOptions } from '@locks/mysql';
import { QueueCheck } from '../checks/queue-check.ts';
import { RowCheck, type RowWriteSeen, type SeenRow } from '../checks/row-check.ts';
import type { World } from '../kernel/world.ts';
import { type RowView, viewOfRow } from '../mysql/row-view.ts';
import { SimulatedMysql, type SqlResult, type SqlRow } from '../mysql/simulated-mysql.ts';
import { SimulatedMysqlPool } from '../mysql/simulated-mysql-pool.ts';
import { SqlError } from '../mysql/sql-error.ts';
import type { Link } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { OperationKind, Plan, StoreFaultPlan } from '../workload/plan.ts';
import type { SimulatedStore } from './simulated-store.ts';

const LOCKS = 'locks_locks';
const CLIENTS = 'locks_clients';
/**
 * A client that was silent for so long counts as dead, and a head that left a free lock for so long is passed over, in microseconds
 * (docs/backends/mysql.md).
 */
const ALIVE_MICROS = 3_000_000;
/** Two transactions collided, and the server undid this one. */
const DEADLOCK = 1213;
const READ_ONLY = 1290;
const COLLIDING_PART = 0.5;

const OPERATOR_KINDS: readonly OperationKind[] = ['steal', 'force-release', 'resize'];

type WriteSeen = Pick<RowWriteSeen, 'after' | 'writer'>;

/** A client, once it has told who it is. */
interface SeenClient {
  id: string | undefined;
}

/** A simulated MySQL, which runs the real SQL, and the network to it. */
export class NetworkedMysql implements SimulatedStore {
  readonly name = 'mysql';
  readonly #world: World;
  readonly #plan: Plan;
  readonly #drift: number;
  readonly #server: SimulatedMysql;
  readonly #pools: (readonly [Link, SimulatedMysqlPool])[] = [];
  readonly #checks = new Map<string, QueueCheck>();
  readonly #rowChecks: ReadonlyMap<string, RowCheck>;
  /** Whether somebody takes locks away. */
  readonly #hasOperator: boolean;
  /** When each client was heard of last. */
  readonly #seen = new Map<string, number>();
  /** Clients that were silent for so long that they counted as dead, or of which the server has forgotten when it heard of them. */
  readonly #doubtful = new Set<string>();
  #awayUntil = 0;
  #collidesUntil = 0;
  #readOnlyUntil = 0;

  constructor(world: World, plan: Plan, drift: number) {
    this.#world = world;
    this.#plan = plan;
    this.#drift = drift;
    this.#server = new SimulatedMysql(() => this.#micros());
    const operations = plan.processes.flatMap(({ clients }) =>
      clients.flatMap((client) => client.operations),
    );
    this.#hasOperator = operations.some(({ kind }) => OPERATOR_KINDS.includes(kind));
    const lives = (client: string): boolean =>
      !this.#doubtful.has(client) && this.#micros() - (this.#seen.get(client) ?? 0) < ALIVE_MICROS;
    this.#rowChecks = new Map(
      plan.resources.map(({ name }) => [
        name,
        new RowCheck(world, name, this.#hasOperator, lives, ALIVE_MICROS),
      ]),
    );
  }

  get isAway(): boolean {
    return this.#world.now < this.#awayUntil;
  }

  goAway(ms: number): void {
    this.#awayUntil = this.#world.now + ms;
  }

  suffer(fault: StoreFaultPlan): boolean {
    switch (fault.kind) {
      case 'restart':
        this.#connectionsEnd(fault.downMs);
        return false;
      case 'failover': {
        const hasLost = this.#server.loseSince(this.#micros(this.#world.now - this.#plan.replicaLagMs));
        for (const [name, check] of this.#checks) {
          const { holds, waiters } = viewOfRow(this.#server.row(LOCKS, name));
          check.wentBackTo(holds, waiters);
        }
        for (const client of this.#seen.keys()) this.#doubtful.add(client);
        this.#connectionsEnd(fault.downMs);
        return hasLost;
      }
      case 'collisions':
        this.#collidesUntil = this.#world.now + fault.ms;
        return false;
      case 'read-only':
        this.#readOnlyUntil = this.#world.now + fault.ms;
        return false;
      default:
        throw new Error(`a simulated MySQL has no ${fault.kind}`);
    }
  }

  backendIn(process: SimulatedProcess, link: Link, { mysqlBackend }: LoadedLocks): LockBackend {
    const { checkIntervalMs, connectionLimit, statementTimeoutMs } = this.#plan;
    const client: SeenClient = { id: undefined };
    const pool = new SimulatedMysqlPool(
      {
        request: async (what, execute) => (await link.request(what, Infinity, execute)).value,
        execute: (sql) => this.#execute(sql, client),
        random: () => process.random.next(),
      },
      connectionLimit,
    );
    this.#pools.push([link, pool]);
    link.onReset = () => pool.lose();
    return mysqlBackend({
      pool: pool as unknown as NonNullable<MysqlBackendOptions['pool']>,
      maxPollMs: checkIntervalMs,
      statementTimeoutMs,
    });
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    const { holds } = viewOfRow(this.#server.row(LOCKS, resource));
    return holds.find(({ id, until = 0 }) => id === acquisitionId && this.#micros() < until)?.mode.kind;
  }

  /** Waiters of clients that are silent, and holds that have ended, count no more: the next write drops them. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    const now = this.#micros();
    const named = ({ label = '' }: { readonly label?: string | undefined }): boolean => isMeant(label);
    const clients = this.#server.rows(CLIENTS);
    const alive = new Set(
      clients.flatMap(({ client = null, seen_at: seenAt = 0 }) =>
        Number(seenAt) > now - ALIVE_MICROS ? [client] : [],
      ),
    );
    return this.#plan.resources.flatMap(({ name }) => {
      const { holds, waiters } = viewOfRow(this.#server.row(LOCKS, name));
      return [
        ...holds
          .filter((hold) => named(hold) && now < (hold.until ?? 0))
          .map(({ label }) => `the hold of ${name} by ${label}`),
        ...waiters
          .filter((waiter) => named(waiter) && alive.has(waiter.client))
          .map(({ label }) => `the wait for ${name} of ${label}`),
      ];
    });
  }

  #execute(sql: string, client: SeenClient): SqlResult {
    const isWrite = !sql.startsWith('SELECT') && sql !== 'COMMIT';
    if (isWrite && this.#world.now < this.#readOnlyUntil)
      throw new SqlError(READ_ONLY, 'The MySQL server is running with the --read-only option');
    if (isWrite && this.#world.now < this.#collidesUntil && this.#world.random.chance(COLLIDING_PART))
      throw new SqlError(DEADLOCK, 'Deadlock found when trying to get lock; try restarting transaction');
    if (!isWrite) return this.#server.execute(sql);
    const before = this.#plan.resources.map(({ name }) => this.#server.row(LOCKS, name));
    const result = this.#server.execute(sql);
    this.#hearOf(client, sql);
    for (const [index, { name }] of this.#plan.resources.entries()) {
      const row = this.#server.row(LOCKS, name);
      // A statement that finds a row taken leaves it as it is.
      if (row?.['version'] === before[index]?.['version']) continue;
      const isTake = sql.startsWith('INSERT');
      const seen = { before: seenIn(before[index]), after: seenIn(row), isTake, writer: client.id };
      this.#rowChecks.get(name)?.written({ ...seen, now: this.#micros() });
      this.#checkWrite(name, seen);
    }
    return result;
  }

  /** Each client names itself in its heartbeat, and when it leaves. */
  #hearOf(client: SeenClient, sql: string): void {
    const [, hex] = /^(?:INSERT INTO|DELETE FROM) `locks_clients` .*?X'([0-9a-f]+)'/i.exec(sql) ?? [];
    if (hex === undefined) return;
    const id = Buffer.from(hex, 'hex').toString('utf8');
    client.id = id;
    if (sql.startsWith('DELETE')) this.#doubtful.add(id);
    const now = this.#micros();
    if (now - (this.#seen.get(id) ?? now) >= ALIVE_MICROS) this.#doubtful.add(id);
    this.#seen.set(id, now);
  }

  #checkWrite(name: string, { after, writer }: WriteSeen): void {
    this.#world.note(this.name, () => `${name} ${inWords(after)}`);
    const now = this.#micros();
    const check = this.#checks.get(name) ?? this.#newCheck(name);
    this.#checks.set(name, check);
    const lives = ({ until = Infinity }: { readonly until: number | undefined }): boolean => now < until;
    // One write may carry several steps, such as a grant and a steal from whoever was granted.
    check.stepTaken(after.holds.filter(lives), after.waiters, [], (client) => client === writer);
  }

  #newCheck(name: string): QueueCheck {
    return new QueueCheck(this.#world, name, { isCombined: true, hasOperator: this.#hasOperator });
  }

  #micros(at = this.#world.now): number {
    return Math.floor((1_790_000_000_000 + at * (1 + this.#drift)) * 1_000);
  }

  #connectionsEnd(downMs: number): void {
    this.goAway(downMs);
    for (const [link] of this.#pools) link.reset();
  }
}

function seenIn(row: SqlRow | undefined): SeenRow {
  const [waiting, freeAt] = [Number(row?.['waiting'] ?? 0), Number(row?.['free_at'] ?? 0)];
  return { ...viewOfRow(row), saysWaiting: waiting > 0, freeAt };
}

function inWords({ holds, waiters }: RowView): string {
  return `is held by ${holds.map(({ label }) => label).join(', ') || 'nobody'}, waited for by ${waiters.map(({ label }) => label).join(', ') || 'nobody'}`;
}
