import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { StoreFaultPlan } from '../workload/plan.ts';
import type { LentPgClient, SimulatedPgPool } from './simulated-pg-pool.ts';

/** What the application does to the pool that it shares with the locks. */
export type PoolFaultPlan = Extract<StoreFaultPlan, { readonly process: number }>;

/** The statements that leave a setting behind, and take it back. */
const SETTINGS = {
  'statement timeout': ['SET statement_timeout = 20', 'SET statement_timeout = DEFAULT'],
  'search path': ['SET search_path = application', 'SET search_path = DEFAULT'],
  'read-only': ['SET default_transaction_read_only = on', 'SET default_transaction_read_only = DEFAULT'],
} as const;
const WORK = 'INSERT INTO application.work VALUES (1)';
const FAILS = 'SELECT 1 / 0';
const NOTICED_AFTER_MS = 3_000;

/** The part of a process that uses its pool for other things than locks, and uses it badly. */
export class SharingApplication {
  readonly #process: SimulatedProcess;
  readonly #pool: SimulatedPgPool;

  constructor(process: SimulatedProcess, pool: SimulatedPgPool) {
    this.#process = process;
    this.#pool = pool;
  }

  suffer(fault: PoolFaultPlan): void {
    switch (fault.kind) {
      case 'open transaction': {
        if (fault.begin === 'late') return this.#beginLate(fault.end, fault.ms);
        const statements = [
          'BEGIN',
          ...(fault.works ? [WORK] : []),
          ...(fault.begin === 'failed' ? [FAILS] : []),
        ];
        return this.#leave(statements, fault.begin !== 'unanswered', fault.end, fault.ms);
      }
      case 'left setting': {
        const [before, after] = SETTINGS[fault.setting];
        return this.#leave([before], true, after, fault.ms);
      }
      case 'held connections':
        for (let held = 0; held < this.#pool.options.max; held += 1) this.#hold(fault.ms);
        return;
      default:
        fault satisfies never;
    }
  }

  /** Returns a client to the pool behind these statements, or before they are answered, and sends the last one on it later. */
  #leave(statements: readonly string[], isAnswered: boolean, last: string, ms: number): void {
    this.#use((client, giveBack) => {
      let unanswered = statements.length;
      for (const text of statements)
        void client.query({ text }, () => {
          unanswered -= 1;
          if (isAnswered && unanswered === 0) giveBack();
        });
      if (!isAnswered) giveBack();
      // Without an answer the connection is found broken at some time.
      else
        this.#process.setTimeout(() => unanswered > 0 && giveBack(new Error('no answer')), NOTICED_AFTER_MS);
      this.#process.setTimeout(() => void client.query({ text: last }, ignore), ms);
    });
  }

  /** Returns a client with a query under way, and begins a transaction on it just after. */
  #beginLate(last: string, ms: number): void {
    this.#use((client, giveBack) => {
      const ask = (text: string): void => void client.query({ text }, ignore);
      ask('SELECT 1');
      giveBack();
      this.#process.setTimeout(() => ask('BEGIN'), 1);
      this.#process.setTimeout(() => ask(last), ms);
    });
  }

  #hold(ms: number): void {
    this.#use((_, giveBack) => void this.#process.setTimeout(giveBack, ms));
  }

  #use(work: (client: LentPgClient, giveBack: (error?: Error) => void) => void): void {
    this.#pool.connect((_, client) => {
      if (client === undefined) return;
      client.on('error', ignore);
      let isLent = true;
      work(client, (error) => {
        if (!isLent) return;
        isLent = false;
        client.removeListener('error', ignore);
        client.release(error);
      });
    });
  }
}

function ignore(): void {
  // The application goes on.
}
