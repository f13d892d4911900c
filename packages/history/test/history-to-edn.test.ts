import { describe, expect, it } from 'vitest';
import { HistoryError, type HistoryEvent, historyToEdn, parseHistory } from '../src/index.ts';
import { Planted } from './planted.ts';

/** What each line says, without its index and time. */
function says(events: readonly HistoryEvent[]): string[] {
  return [...historyToEdn(events)].map((line) => line.replace(/^\{:index \d+, :time -?\d+, (.*)\}\n$/, '$1'));
}

describe('historyToEdn', () => {
  it('numbers the events in the order of their times, which count in nanoseconds from the first', () => {
    const { events } = new Planted()
      .acquire('b', 'y', 4, 2)
      .acquire('a', 'x', 1.000001, 1)
      .release('a', 'x', 2);
    const lines = [...historyToEdn(events)];
    expect(lines).toEqual([
      '{:index 0, :time 0, :type :invoke, :process 0, :f :acquire, :value {:lock "stock", :client "a", :mode :exclusive, :uid "x"}}\n',
      '{:index 1, :time 500000, :type :ok, :process 0, :f :acquire, :value {:lock "stock", :client "a", :mode :exclusive, :uid "x", :fence 1}}\n',
      '{:index 2, :time 1499999, :type :invoke, :process 0, :f :release, :value {:lock "stock", :client "a", :uid "x"}}\n',
      '{:index 3, :time 1749999, :type :ok, :process 0, :f :release, :value {:lock "stock", :client "a", :uid "x"}}\n',
      '{:index 4, :time 2999999, :type :invoke, :process 0, :f :acquire, :value {:lock "stock", :client "b", :mode :exclusive, :uid "y"}}\n',
      '{:index 5, :time 3499999, :type :ok, :process 0, :f :acquire, :value {:lock "stock", :client "b", :mode :exclusive, :uid "y", :fence 2}}\n',
    ]);
  });

  it('gives overlapping calls different processes, and none to a process after an unknown outcome', () => {
    const { events } = new Planted()
      .acquire('a', 'x', 1)
      .acquire('a', 'y', 1.25)
      .release('a', 'x', 2, 'info')
      .release('a', 'y', 3)
      .release('a', 'x', 4, 'fail');
    const numbers = says(events).map((line) => /:type :(\w+), :process (\d)/.exec(line)?.slice(1).join(' '));
    expect(numbers).toEqual([
      'invoke 0',
      'invoke 1',
      'ok 0',
      'ok 1',
      'invoke 1',
      'info 1',
      'invoke 0',
      'ok 0',
      'invoke 0',
      'fail 0',
    ]);
  });

  it('writes the modes, tokens of any length, and texts with quotes, and repeats them at the end of a call', () => {
    const mode = { kind: 'permit', weight: 2, limit: 3 } as const;
    const token = 2n ** 64n;
    const call = { operation: 'acquire', process: 'a "b"\n', id: 1, resource: 'é' } as const;
    const value = ':lock "é", :client "a \\"b\\"\\n", :mode :permit, :weight 2, :limit 3';
    expect(
      says([
        { ...call, type: 'invoke', time: 1, mode },
        { ...call, type: 'ok', time: 2, acquisitionId: 'x', token: `00${token}` },
        { ...call, id: 2, type: 'invoke', time: 3, mode },
        { ...call, id: 2, type: 'fail', time: 4, error: 'no "more"' },
      ]),
    ).toEqual([
      `:type :invoke, :process 0, :f :acquire, :value {${value}}`,
      `:type :ok, :process 0, :f :acquire, :value {${value}, :uid "x", :fence 18446744073709551616N}`,
      `:type :invoke, :process 0, :f :acquire, :value {${value}}`,
      `:type :fail, :process 0, :f :acquire, :value {${value}}, :error "no \\"more\\""`,
    ]);
  });

  const lastTwo = (history: Planted) =>
    [...historyToEdn(history.events)]
      .slice(-2)
      .map((line) => /:time (.*), :process (\d, .*)\}\n/.exec(line)?.slice(1));
  const end = ':f :release, :value {:lock "stock", :client "a", :uid "x", :cause';

  it('writes a loss as a release, from the last time at which the holder took its lease for valid', () => {
    expect(lastTwo(new Planted().acquire('a', 'x', 1).loss('a', 'x', 3, 2))).toEqual([
      ['1500000, :type :invoke', `0, ${end} :loss}`],
      ['2500000, :type :ok', `0, ${end} :loss}`],
    ]);
  });

  it('leaves the outcome of a loss open where a release was under way', () => {
    const { events } = new Planted().acquire('a', 'x', 1).release('a', 'x', 2).loss('a', 'x', 2.125);
    expect(says(events).slice(-3)).toEqual([
      `:type :invoke, :process 1, ${end} :loss}`,
      `:type :info, :process 1, ${end} :loss}`,
      ':type :ok, :process 0, :f :release, :value {:lock "stock", :client "a", :uid "x"}',
    ]);
  });

  it('writes a crash as a release with an unknown outcome of what the process held', () => {
    const history = new Planted()
      .acquire('a', 'w', 0.5)
      .release('a', 'w', 0.625)
      .acquire('a', 'x', 1)
      .acquire('b', 'y', 1)
      .crash('a', 3);
    expect(lastTwo(history)).toEqual([
      ['3000000, :type :invoke', `2, ${end} :crash}`],
      ['3000000, :type :info', `2, ${end} :crash}`],
    ]);
  });

  it('refuses a malformed history before it writes a line', () => {
    const lines = historyToEdn(parseHistory('{"type":"info","operation":"loss","process":"a","time":1}'));
    expect(() => lines.next()).toThrow(HistoryError);
  });

  it('writes nothing of an empty history', () => {
    expect(says([])).toEqual([]);
  });
});
