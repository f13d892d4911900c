import { Buffer } from 'node:buffer';
import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { QueueCheck } from '../checks/queue-check.ts';
import type { World } from '../kernel/world.ts';
import type { Link } from '../network/link.ts';
import type { EmbeddedPostgres, TableTexts } from '../postgres/embedded-postgres.ts';
import { SharingApplication } from '../postgres/sharing-application.ts';
import { SimulatedPgPool } from '../postgres/simulated-pg-pool.ts';
import { type SentStatement, type ServerSession, SimulatedPostgres } from '../postgres/simulated-postgres.ts';
import { type TableView, TablesView } from '../postgres/table-view.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { listens, type Plan, type StoreFaultPlan } from '../workload/plan.ts';
import type { SimulatedStore } from './simulated-store.ts';
import { leftInWords, usersInWords } from './users-in-words.ts';

interface UsedBy {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly sessions: Set<ServerSession>;
  readonly application: SharingApplication;
}

/** A simulated PostgreSQL, the networks to it, and what is checked of each resource after every step. */
export class NetworkedPostgres implements SimulatedStore {
  readonly name = 'postgres';
  readonly #world: World;
  readonly #plan: Plan;
  readonly #server: SimulatedPostgres;
  readonly #users: UsedBy[] = [];
  readonly #checks = new Map<string, QueueCheck>();
  #view: TablesView;
  #awayUntil = 0;

  constructor(world: World, plan: Plan, drift: number, engine: EmbeddedPostgres) {
    this.#world = world;
    this.#plan = plan;
    this.#server = new SimulatedPostgres(world, {
      engine,
      drift,
      written: (statements, tables) => this.#written(statements, tables),
    });
    this.#view = new TablesView(this.#server.tables);
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
        this.#restart(fault.downMs);
        return false;
      case 'failover': {
        const hasLost = this.#server.loseSince(this.#world.now - this.#plan.replicaLagMs);
        this.#view = new TablesView(this.#server.tables);
        for (const [name, check] of this.#checks) {
          const { holds, waiters } = this.#view.get(name);
          check.wentBackTo(holds, waiters);
        }
        this.#restart(fault.downMs);
        return hasLost;
      }
      case 'read-only':
        this.#server.isReadOnly = true;
        this.#world.schedule(this.#world.now + fault.ms, () => {
          this.#server.isReadOnly = false;
        });
        return false;
      case 'sessions end':
        for (const { link } of this.#users) link.reset();
        return false;
      case 'rows locked': {
        const { name = '' } = this.#plan.resources[fault.resource] ?? {};
        this.#server.lockRows(Buffer.from(name).toString('hex'), fault.ms);
        return false;
      }
      case 'open transaction':
      case 'left setting':
      case 'held connections': {
        const { process, application } = this.#users[fault.process] as UsedBy;
        process.deliver(this.#world.now, () => application.suffer(fault));
        return false;
      }
      default:
        throw new Error(`a simulated PostgreSQL has no ${fault.kind}`);
    }
  }

  backendIn(process: SimulatedProcess, link: Link, { postgresLeaseBackend }: LoadedLocks): LockBackend {
    const sessions = new Set<ServerSession>();
    const simulated = { process, link, server: this.#server, sessions };
    const pool = new SimulatedPgPool({ simulated, max: this.#plan.connectionLimit });
    link.onReset = () => {
      for (const session of sessions) this.#server.end(session);
      sessions.clear();
    };
    this.#users.push({ process, link, sessions, application: new SharingApplication(process, pool) });
    return postgresLeaseBackend(pool as never, { listen: listens(this.#plan) }) as LockBackend;
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    const now = this.#server.micros();
    const { holds } = this.#view.get(resource);
    return holds.find(({ id, until = 0 }) => id === acquisitionId && now < until)?.mode.kind;
  }

  /** Waiters of clients that are dead, and holds that have ended, count no more: the next step drops them. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    const now = this.#server.micros();
    return this.#plan.resources.flatMap(({ name }) => {
      const { holds, waiters } = this.#view.get(name);
      const living = {
        holds: holds.filter(({ until }) => now < (until ?? 0)),
        waiters: waiters.filter(({ client }) => this.#isAlive(client)),
      };
      return leftInWords(name, living, isMeant);
    });
  }

  #restart(downMs: number): void {
    this.goAway(downMs);
    this.#server.restart();
    for (const { link } of this.#users) link.reset();
  }

  #isAlive(client: string): boolean {
    return this.#server.micros() < (this.#view.clients.get(client)?.aliveUntil ?? 0);
  }

  /** Whether a hand-off reaches the client: by a message, since its listener lives. */
  #isTold(client: string): boolean {
    const { listener } = this.#view.clients.get(client) ?? {};
    return this.#isAlive(client) && listener !== undefined && this.#server.isLocked(listener);
  }

  #written(statements: readonly SentStatement[], tables: TableTexts): void {
    const before = this.#view;
    this.#view = new TablesView(tables, before);
    if (this.#view.hasStrays)
      this.#world.violated('§9.1', 'a hold or a waiter has no row in the table of locks');
    for (const { name } of this.#plan.resources) {
      const view = this.#view.get(name);
      const last = before.get(name);
      if (view !== last && JSON.stringify(view) !== JSON.stringify(last))
        this.#checkWrite(name, view, last, statements);
    }
  }

  #checkWrite(name: string, view: TableView, before: TableView, statements: readonly SentStatement[]): void {
    this.#world.note(this.name, () => `${name} ${usersInWords(view)}`);
    const now = this.#server.micros();
    const check = this.#checks.get(name) ?? new QueueCheck(this.#world, name);
    this.#checks.set(name, check);
    // A resize serves at the limit before, and again at its own.
    const { holds: held, waiters } = statements.some(({ text }) => text.includes('.resize('))
      ? atHigherLimit(view, before)
      : view;
    const holds = held.filter(({ until = Infinity }) => now < until);
    const waited = before.waiters.filter(({ client }) => this.#isTold(client));
    // A renewal serves nobody: whoever waits for what has ended is served by the next check. What is committed now was decided when its
    // statement came; those who have waited for its rows go on behind it.
    const isLate = statements.some((statement) => 'now' in statement);
    const isServing = !isLate && statements.every(({ text }) => !text.includes('.renew('));
    const asks = (client: string): boolean => statements.some(({ values }) => values.includes(client));
    check.stepTaken(holds, waiters, waited, (client) => isServing && (asks(client) || this.#isTold(client)));
  }
}

function atHigherLimit({ holds, waiters }: TableView, before: TableView): TableView {
  const limits = [...before.holds, ...before.waiters].map(({ mode }) =>
    mode.kind === 'permit' ? mode.limit : 0,
  );
  const raised = <T extends { readonly mode: LockMode }>(one: T): T => {
    const { mode } = one;
    return mode.kind === 'permit'
      ? { ...one, mode: { ...mode, limit: Math.max(mode.limit, ...limits) } }
      : one;
  };
  return { holds: holds.map(raised), waiters: waiters.map(raised) };
}
