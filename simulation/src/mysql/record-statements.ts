import { encodeSole, micros, type RowTake } from '@locks/record-protocol/table';
import {
  CLIENT_ALIVE_MS,
  type EncodedWrite,
  MysqlStatements as Sql,
} from '../../../packages/mysql/src/mysql-statements.ts';
import type { RecordCommand, WantedRecord } from './record-command.ts';

export * from '../../../packages/mysql/src/mysql-statements.ts';

/**
 * What `@locks/mysql` asks of its tables, as commands for {@link SimulatedRecords} in place of SQL. The text of the SQL is proven on real
 * servers.
 */
export class MysqlStatements extends Sql {
  override take(take: RowTake): string {
    return text({ kind: 'take', records: [wanted(take)] });
  }

  override takeAll(takes: readonly RowTake[]): string {
    return text({ kind: 'take all', records: takes.map(wanted) });
  }

  override write(write: EncodedWrite): string {
    return this.writeAll([write]);
  }

  override writeAll(writes: readonly EncodedWrite[]): string {
    return text({
      kind: 'write',
      writes: writes.map(({ name, decision, version, bytes }) => ({
        name,
        version: decision.version,
        aliveUntil: Number.isFinite(decision.aliveUntil) ? decision.aliveUntil : undefined,
        standsOnRow: decision.standsOnRow,
        freeAt: latest(decision.holds.map(({ until }) => until)),
        span: latest(decision.holds.map(({ span }) => span)),
        next: { version, token: decision.token, waiting: decision.waiting, state: bytes.toString() },
      })),
    });
  }

  override read(names: readonly string[], known: readonly number[] = []): string {
    return text({ kind: 'read', names, known, aliveMicros: micros(CLIENT_ALIVE_MS) });
  }

  override beat(client: string): string {
    return text({ kind: 'beat', client });
  }

  override leave(client: string): string {
    return text({ kind: 'leave', client });
  }

  /** Another process sweeps, always. */
  override claimSweep(): string {
    return text({ kind: 'nothing' });
  }

  override schemaVersion(): string {
    return text({ kind: 'version' });
  }
}

function text(command: RecordCommand): string {
  return JSON.stringify(command);
}

function wanted({ request, version }: RowTake): WantedRecord {
  const { acquisitionId, mode, label, resource, ttlMs } = request;
  const span = micros(ttlMs);
  return { name: resource, version, span, state: encodeSole(acquisitionId, mode, label, span).toString() };
}

function latest(times: readonly (number | undefined)[]): number {
  return Math.max(0, ...times.map((time) => time ?? 0));
}
