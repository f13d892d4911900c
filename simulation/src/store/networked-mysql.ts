import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { MysqlPool } from '@locks/mysql';
import { QueueCheck } from '../checks/queue-check.ts';
import type { World } from '../kernel/world.ts';
import type { RecordAnswer, RecordCommand } from '../mysql/record-command.ts';
import { type RowView, viewOfRow } from '../mysql/row-view.ts';
import { SimulatedMysqlPool } from '../mysql/simulated-mysql-pool.ts';
import { ServerError, SimulatedRecords } from '../mysql/simulated-records.ts';
import type { Link } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { OperationKind, Plan, StoreFaultPlan } from '../workload/plan.ts';
import type { SimulatedStore } from './simulated-store.ts';
import { leftInWords, usersInWords } from './users-in-words.ts';

/** A client that was silent for so long counts as dead, in microseconds (docs/backends/mysql.md). */
const ALIVE_MICROS = 3_000_000;
/** Two transactions collided, and the server undid this one. */
const DEADLOCK = 1213;
const READ_ONLY = 1290;
const COLLIDING_PART = 0.5;
const WRITES: readonly RecordCommand['kind'][] = ['take', 'take all', 'write', 'beat', 'leave'];

const OPERATOR_KINDS: readonly OperationKind[] = ['steal', 'force-release', 'resize'];

/** A client, once it has told who it is. */
interface SeenClient {
  id: string | undefined;
}

/** A simulated MySQL, which keeps records in place of tables, and the network to it. */
export class NetworkedMysql implements SimulatedStore {
  readonly name = 'mysql';
  readonly #world: World;
  readonly #plan: Plan;
  readonly #drift: number;
  readonly #server: SimulatedRecords;
  readonly #pools: (readonly [Link, SimulatedMysqlPool])[] = [];
  readonly #checks = new Map<string, QueueCheck>();
  /** Whether somebody takes locks away. */
  readonly #hasOperator: boolean;
  #awayUntil = 0;
  #collidesUntil = 0;
  #readOnlyUntil = 0;

  constructor(world: World, plan: Plan, drift: number) {
    this.#world = world;
    this.#plan = plan;
    this.#drift = drift;
    this.#server = new SimulatedRecords(() => this.#micros());
    const operations = plan.processes.flatMap(({ clients }) =>
      clients.flatMap((client) => client.operations),
    );
    this.#hasOperator = operations.some(({ kind }) => OPERATOR_KINDS.includes(kind));
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
          const { holds, waiters } = viewOfRow(this.#server.record(name));
          check.wentBackTo(holds, waiters);
        }
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
    const { maxPollMs, connectionLimit, requestTimeoutMs } = this.#plan;
    const client: SeenClient = { id: undefined };
    const pool = new SimulatedMysqlPool(
      {
        request: async (what, execute) => (await link.request(what, Infinity, execute)).value,
        execute: (command) => this.#execute(command, client),
        random: () => process.random.next(),
      },
      connectionLimit,
    );
    this.#pools.push([link, pool]);
    link.onReset = () => pool.lose();
    return mysqlBackend(pool as unknown as MysqlPool, { maxPollMs, requestTimeoutMs });
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    const { holds } = viewOfRow(this.#server.record(resource));
    return holds.find(({ id, until = 0 }) => id === acquisitionId && this.#micros() < until)?.mode.kind;
  }

  /** Waiters of clients that are silent, and holds that have ended, count no more: the next write drops them. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    const now = this.#micros();
    return this.#plan.resources.flatMap(({ name }) => {
      const { holds, waiters } = viewOfRow(this.#server.record(name));
      const living = {
        holds: holds.filter(({ until }) => now < (until ?? 0)),
        waiters: waiters.filter(({ client }) => this.#server.isAlive(client, ALIVE_MICROS)),
      };
      return leftInWords(name, living, isMeant);
    });
  }

  #execute(command: RecordCommand, client: SeenClient): RecordAnswer {
    if (!WRITES.includes(command.kind)) return this.#server.execute(command);
    if (this.#world.now < this.#readOnlyUntil)
      throw new ServerError(READ_ONLY, 'The MySQL server is running with the --read-only option');
    if (this.#world.now < this.#collidesUntil && this.#world.random.chance(COLLIDING_PART))
      throw new ServerError(DEADLOCK, 'Deadlock found when trying to get lock; try restarting transaction');
    const before = this.#plan.resources.map(({ name }) => this.#server.record(name));
    const answer = this.#server.execute(command);
    // Each client names itself in its heartbeat, and when it leaves.
    if ('client' in command) client.id = command.client;
    for (const [index, { name }] of this.#plan.resources.entries()) {
      const record = this.#server.record(name);
      if (record?.version !== before[index]?.version) this.#checkWrite(name, viewOfRow(record), client.id);
    }
    return answer;
  }

  #checkWrite(name: string, view: RowView, writer: string | undefined): void {
    this.#world.note(this.name, () => `${name} ${usersInWords(view)}`);
    const now = this.#micros();
    const check = this.#checks.get(name) ?? this.#newCheck(name);
    this.#checks.set(name, check);
    const lives = ({ until = Infinity }: { readonly until: number | undefined }): boolean => now < until;
    // One write may carry several steps, such as a grant and a steal from whoever was granted.
    check.stepTaken(view.holds.filter(lives), view.waiters, [], (client) => client === writer);
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
