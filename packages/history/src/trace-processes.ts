import type { DataLoss } from './judge-beliefs.ts';
import type { ReadTrace } from './read-trace.ts';
import type { PlacedLine, TracedProcess } from './traced-acquisition.ts';

interface Begun extends TracedProcess {
  readonly file: string | undefined;
  /** Moments at which both clocks were read: `time` and the wall clock. */
  readonly marks: { readonly time: number; readonly wall: number }[];
}

/** The processes of a trace, their lines with times on one clock. */
export function orderedProcesses({ lines, malformed }: ReadTrace): {
  readonly processes: readonly TracedProcess[];
  readonly machines: number;
  readonly losses: readonly DataLoss[];
  readonly startedAt: number;
} {
  const processes: Begun[] = [];
  const read: (readonly [process: Begun, line: ReadTrace['lines'][number]])[] = [];
  const remarks: ReadTrace['lines'][number][] = [];
  let current: Begun | undefined;
  let lineBefore = 0;
  for (const line of lines) {
    const { event, file } = line;
    const isOther = current?.file !== file || line.line <= lineBefore;
    lineBefore = line.line;
    if (event.step === 'data-lost') {
      remarks.push(line);
      continue;
    }
    if (event.step === 'begin' || current === undefined || isOther) {
      const begun = event.step === 'begin' ? event : undefined;
      const name = begun?.process ?? `a process without a beginning (${file ?? 'trace'})`;
      const machine = begun?.machine ?? '';
      current = {
        ...{ name, machine, file, marks: [], lines: [], clients: new Map() },
        isIncomplete: begun === undefined || malformed.some((one) => one.file === file),
      };
      processes.push(current);
    }
    if (event.step === 'begin' || event.step === 'clock') current.marks.push(event);
    else if (event.step === 'client') current.clients.set(event.client, { ...event, closed: undefined });
    else if (event.step === 'dropped') current.isIncomplete = true;
    read.push([current, line]);
  }
  const machines = new Set(processes.map(({ machine }) => machine)).size;
  const shift = new Map(processes.map((process) => [process, shiftOf(process, machines > 1)]));
  for (const [process, line] of read) {
    const time = line.event.time + (shift.get(process)?.(line.event.time) ?? 0);
    process.lines.push({ ...line, time });
  }
  const losses = remarks.map(({ event }) => ({
    from: event.time,
    until: (event as { readonly until?: number }).until ?? event.time,
  }));
  let startedAt = Number.POSITIVE_INFINITY;
  for (const process of processes) {
    inOrder(process.lines);
    startedAt = Math.min(startedAt, process.lines[0]?.time ?? startedAt);
  }
  return { processes, machines, losses, startedAt };
}

/** By how much a time of the process is shifted: by wall clocks where there are several machines. */
function shiftOf({ marks }: Begun, hasMachines: boolean): (time: number) => number {
  if (!hasMachines || marks.length === 0) return () => 0;
  return (time) => {
    const mark = marks.findLast((one) => one.time <= time) ?? (marks[0] as Begun['marks'][number]);
    return mark.wall - mark.time;
  };
}

/** Times of a process never go back, also where its wall clock was set. */
function inOrder(lines: PlacedLine[]): void {
  let latest = Number.NEGATIVE_INFINITY;
  for (const [index, line] of lines.entries()) {
    if (line.time < latest) lines[index] = { ...line, time: latest };
    latest = Math.max(latest, line.time);
  }
}
