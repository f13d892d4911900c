import type { Store } from '../backends.ts';
import { lineOf } from '../grid.ts';
import type { Settings } from '../settings.ts';
import type { NightReport } from './machine.ts';
import { type RunningMachine, startMachine } from './machines.ts';

/** The machines, by the minutes that their clocks are ahead. */
const MACHINES = [
  { label: 'a', aheadMinutes: 0, about: 'a: clock right' },
  { label: 'b', aheadMinutes: -6, about: 'b: 6 min late' },
  { label: 'c', aheadMinutes: 4, about: 'c: 4 min ahead' },
] as const;
const HEAD = ['night', ...MACHINES.map(({ about }) => about), 'runs', 'with a lock alone'];
const WIDTHS = HEAD.map((title, column) => Math.max(title.length, column === 0 ? 10 : 0));

interface NightResult {
  readonly slot: string;
  readonly reports: readonly NightReport[];
  readonly runs: number;
  readonly runsWithLockAlone: number;
}

/** Lets nights pass in which every machine starts the same job, and shows which of them ran it. */
export async function playOnce(
  store: Store,
  { backend, nights, json }: Settings & { readonly act: 'once' },
): Promise<boolean> {
  const say = (text: string): void => (json ? undefined : console.log(text));
  say(`Three machines start the same job at three o'clock, each by its own clock. The lock is in ${backend}`);
  say(`(${store.place}), the record in a SQLite file. A minute takes 120 ms.\n`);
  say(lineOf(HEAD, WIDTHS));
  await using machines = await startAll(store);
  const results: NightResult[] = [];
  for (let index = 0; index < nights; index += 1) {
    const result = await playNight(machines.list, index);
    results.push(result);
    const statuses = result.reports.map(({ status }) => status);
    say(lineOf([result.slot, ...statuses, `${result.runs}`, `${result.runsWithLockAlone}`], WIDTHS));
  }
  return report(results, json);
}

async function playNight(machines: readonly RunningMachine[], index: number): Promise<NightResult> {
  const beganAt = Date.now();
  const reports = await Promise.all(machines.map((machine) => machine.night({ index, beganAt })));
  return {
    slot: reports[0]?.slot ?? '',
    reports,
    runs: reports.filter(({ status }) => status === 'ran').length,
    runsWithLockAlone: reports.filter(({ ranWithLockAlone }) => ranWithLockAlone).length,
  };
}

/** Gives whether each night had exactly one run, and the lock alone had more. */
function report(results: readonly NightResult[], json: boolean): boolean {
  const total = (of: (result: NightResult) => number): number =>
    results.reduce((sum, one) => sum + of(one), 0);
  const [runs, alone] = [total((one) => one.runs), total((one) => one.runsWithLockAlone)];
  const slots = new Set(results.flatMap(({ reports }) => reports.map(({ slot }) => slot)));
  const exact = results.every((one) => one.runs === 1) && slots.size === results.length;
  const ok = exact && alone > runs;
  if (json)
    console.log(JSON.stringify({ nights: results, runs, runsWithLockAlone: alone, ok }, undefined, 2));
  else if (ok)
    console.log(
      `\nThe job ran ${runs} times in ${results.length} nights, once in each. Under a lock alone, without a slot store, it ran ${alone} times.`,
    );
  else
    console.log('\nThis run proves nothing: a night had no run or several, or the lock alone had no more.');
  return ok;
}

async function startAll(
  store: Store,
): Promise<AsyncDisposable & { readonly list: readonly RunningMachine[] }> {
  const { address, directory } = store;
  const list = await Promise.all(
    MACHINES.map(({ label, aheadMinutes }) => startMachine({ address, directory, label, aheadMinutes })),
  );
  return {
    list,
    // The machines leave their connections in good order, so the store must outlive them.
    async [Symbol.asyncDispose]() {
      await Promise.all(list.map((machine) => machine[Symbol.asyncDispose]()));
    },
  };
}
