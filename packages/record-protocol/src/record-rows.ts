import type { HoldRecord } from '@locks/core/rules';
import type { LockRow } from './lock-row.ts';
import { decodedOr, mustHold } from './malformed-record.ts';
import type { QueueLookout } from './queue-lookout.ts';
import type { StoredRecord } from './record-store.ts';
import { decodeRecord, type HoldTimes, type RecordSource } from './record-value.ts';
import type { Sightings } from './sightings.ts';
import type { StoreClock } from './store-clock.ts';
import type { TimeLimit } from './time-limit.ts';
import type { TimeProbe } from './time-probe.ts';

export type NamedRecord = readonly [name: string, record: StoredRecord];

/** What this process knows besides the records. */
interface Knowledge {
  readonly sightings: Sightings;
  readonly clock: StoreClock;
  readonly probe: TimeProbe;
  readonly lookout: QueueLookout;
  /** The table's time. */
  readonly now: () => number;
  readonly keyOf: (name: string) => string;
}

/** The rows of records that were just read, with the ends that the holds in them have for this process. */
export class RecordRows {
  readonly #knowledge: Knowledge;

  constructor(knowledge: Knowledge) {
    this.#knowledge = knowledge;
  }

  /** The rows, by name. The store is asked for its time where that could tell more; without an answer, what is known decides. */
  async of(records: readonly NamedRecord[], limit: TimeLimit): Promise<Map<string, LockRow>> {
    const { probe } = this.#knowledge;
    const rows = this.#rowsOf(records);
    if (!probe.canTellMore(endsIn(rows))) return rows;
    await probe.ask(limit).catch(() => undefined);
    return this.#rowsOf(records);
  }

  #rowsOf(records: readonly NamedRecord[]): Map<string, LockRow> {
    return new Map(records.map((record) => [record[0], this.ofOne(record)] as const));
  }

  /** The row of one record, by what is known of the store's time. */
  ofOne([name, record]: NamedRecord): LockRow {
    const { sightings, clock, lookout, now, keyOf } = this.#knowledge;
    const at = performance.now();
    const seenAt = now();
    const where = `the record ${JSON.stringify(keyOf(name))}`;
    const row = decodedOr(where, () => {
      const { name: own, row: decoded } = decodeRecord(record, where);
      mustHold(own === name, `it is of the lock ${JSON.stringify(own)} under another prefix`);
      return decoded;
    });
    if (row.malformed !== undefined) return row;
    const source = row.source as RecordSource;
    const since = sightings.see(name, source.times, seenAt);
    for (const hold of row.holds as HoldRecord[]) {
      const { span, end } = source.times.get(hold.id) as HoldTimes;
      const left = end === undefined ? undefined : clock.untilPassed(end, at);
      hold.until = Math.min(since(hold.id) + span, seenAt + (left ?? Infinity));
      hold.isFirstSight = left === undefined && since(hold.id) === seenAt;
    }
    lookout.note(name, row);
    return row;
  }

  /** As {@link LockTable.refineEnds}. */
  refineEnds({ holds, source }: LockRow): void {
    const { clock, now } = this.#knowledge;
    const times = (source as RecordSource | undefined)?.times;
    const at = performance.now();
    const seenAt = now();
    for (const hold of holds as HoldRecord[]) {
      const end = times?.get(hold.id)?.end;
      const left = end === undefined ? undefined : clock.untilPassed(end, at);
      if (left !== undefined && hold.until !== undefined) hold.until = Math.min(hold.until, seenAt + left);
    }
  }
}

/** The ends of all holds by the store's clock. */
function endsIn(rows: ReadonlyMap<string, LockRow>): number[] {
  return [...rows.values()].flatMap(({ source }) =>
    [...((source as RecordSource | undefined)?.times.values() ?? [])].flatMap(({ end }) => end ?? []),
  );
}
