import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  checkHistory,
  HistoryError,
  type HistoryExpectation,
  parseHistory,
  readHistory,
} from '../src/index.ts';

const INVOKE = '{"type":"invoke","operation":"acquire","process":"a","id":1,"time":1,"resource":"r"}';
const OK =
  '{"type":"ok","operation":"acquire","process":"a","id":1,"time":2,"resource":"r","acquisitionId":"x","token":"1"}';
const RELEASE =
  '{"type":"invoke","operation":"release","process":"a","id":2,"time":3,"resource":"r","acquisitionId":"x"}';
const LOSS =
  '{"type":"info","operation":"loss","process":"a","time":3,"resource":"r","acquisitionId":"x","endedAt":2.5}';

/** The error of a function, which must be one of this package. */
function refusal(work: () => unknown): HistoryError {
  try {
    work();
  } catch (error) {
    if (error instanceof HistoryError) return error;
    throw error;
  }
  return expect.fail('it was accepted');
}

describe('a malformed history', () => {
  it.each([
    ['no JSON', '{"type":'],
    ['no object', '[]'],
    ['nothing', 'null'],
    ['an unknown property', INVOKE.replace('"id"', '"number":1,"id"')],
    ['an unknown type', INVOKE.replace('invoke', 'begin')],
    ['an unknown operation', INVOKE.replace('acquire', 'take')],
    ['no process', INVOKE.replace('"process":"a",', '')],
    ['an empty process', INVOKE.replace('"process":"a"', '"process":""')],
    ['no time', INVOKE.replace('"time":1,', '')],
    ['a time that is no number', INVOKE.replace('"time":1', '"time":"1"')],
    ['no id', INVOKE.replace('"id":1,', '')],
    ['a broken id', INVOKE.replace('"id":1', '"id":1.5')],
    ['no resource', INVOKE.replace(',"resource":"r"', '')],
    ['an unknown mode', INVOKE.replace('}', ',"mode":"exclusive"}')],
    ['permits without a limit', INVOKE.replace('}', ',"mode":{"kind":"permit","weight":1}}')],
    ['more permits than the limit', INVOKE.replace('}', ',"mode":{"kind":"permit","weight":3,"limit":2}}')],
    ['a release without an acquisition', RELEASE.replace(',"acquisitionId":"x"', '')],
    ['a loss that is no info', LOSS.replace('info', 'ok')],
    ['a loss that ended after it was noted', LOSS.replace('2.5', '4')],
  ])('with %s is refused with its line', (_, line) => {
    const { code, line: at, file } = refusal(() => checkHistory(parseHistory(['', line])));
    expect([code, at, file]).toEqual(['LOCK_INVALID_ARGUMENT', 2, undefined]);
  });

  it.each([
    ['an end without a beginning', [OK], 1],
    ['two beginnings', [INVOKE, INVOKE], 2],
    ['two ends', [INVOKE, OK, OK], 3],
    ['a grant without an acquisition', [INVOKE, OK.replace('"acquisitionId":"x",', '')], 2],
    ['a token that is no number', [INVOKE, OK.replace('"1"', '"1n"')], 2],
    ['an end before the beginning', [INVOKE, OK.replace('"time":2', '"time":0.5')], 2],
    ['an end of another kind', [INVOKE, RELEASE.replace('invoke', 'ok').replace('"id":2', '"id":1')], 2],
    ['an end for another resource', [INVOKE, OK.replace('"r"', '"s"')], 2],
    [
      'an end for another acquisition',
      [RELEASE, RELEASE.replace('invoke', 'ok').replace('"acquisitionId":"x"', '"acquisitionId":"y"')],
      2,
    ],
    ['an event after a crash', ['{"type":"info","operation":"crash","process":"a","time":0}', INVOKE], 2],
  ])('with %s is refused with its line', (_, lines, at) => {
    const { code, line } = refusal(() => checkHistory(parseHistory(lines.join('\n'))));
    expect([code, line]).toEqual(['LOCK_INVALID_ARGUMENT', at]);
  });

  it('that is a list is refused with the number of the event', () => {
    const event = JSON.parse(INVOKE) as never;
    expect(
      refusal(() => checkHistory([event, { ...(event as object), time: Number.NaN } as never])).line,
    ).toBe(2);
    for (const odd of [undefined, null, 5, {}]) refusal(() => checkHistory(odd as never));
    for (const odd of [undefined, null, 5, {}]) refusal(() => parseHistory(odd as never));
  });

  it('in files is refused with the file and its line, whatever the pieces in which it is read', () => {
    const folder = mkdtempSync(join(tmpdir(), 'history-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [one, other] = [join(folder, 'one.jsonl'), join(folder, 'other.jsonl')];
    // Names of two and of three bytes: a piece ends within a character.
    const long = Array.from({ length: 40_000 }, (_, index) =>
      INVOKE.replace('"a"', '"é€"').replace('"id":1', `"id":${index}`),
    );
    writeFileSync(one, `${long.join('\n')}\n`);
    writeFileSync(other, `${INVOKE}\n${OK}`);
    expect(checkHistory(readHistory(one, other))).toMatchObject({ operations: 40_001, holds: 1 });
    writeFileSync(other, `${INVOKE}\n\n{`);
    const { file, line, message } = refusal(() => checkHistory(readHistory(one, other)));
    expect([file, line]).toEqual([other, 3]);
    expect(message).toContain(`${other}:3: not JSON`);
    refusal(() => readHistory());
    refusal(() => readHistory(one, 5 as never));
    expect(() => [...readHistory(join(folder, 'none.jsonl'))]).toThrow(/ENOENT/);
  });

  it('is not asked for by an expectation that does not exist', () => {
    const { code, message, line } = refusal(() => checkHistory([], 'fence' as HistoryExpectation));
    expect([code, line]).toEqual(['LOCK_INVALID_ARGUMENT', undefined]);
    expect(message).toContain('fenced or reentrant');
  });
});
