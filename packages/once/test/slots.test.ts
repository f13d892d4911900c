import { describe, expect, it } from 'vitest';
import { day, every, hour, type Slot } from '../src/index.ts';

const at = (iso: string): number => Date.parse(iso);
const MINUTE = 60_000;

/** The moments at which the slot changes, between two moments, looked at once a minute. */
function changes(slot: Slot, from: string, to: string): string[] {
  const found: string[] = [];
  let last = slot(at(from));
  for (let now = at(from); now <= at(to); now += MINUTE) {
    const next = slot(now);
    if (next !== last) found.push(`${new Date(now).toISOString()} ${next}`);
    last = next;
  }
  return found;
}

describe('day', () => {
  it('is the date in UTC by default', () => {
    expect(day()(at('2026-11-22T00:00:00Z'))).toBe('2026-11-22');
    expect(day()(at('2026-11-22T23:59:59.999Z'))).toBe('2026-11-22');
    expect(day()(at('2026-11-23T00:00:00Z'))).toBe('2026-11-23');
  });

  it.each([
    ['Europe/Berlin', '2026-11-22T22:59:59Z', '2026-11-22T23:00:00Z'],
    ['America/New_York', '2026-11-23T04:59:59Z', '2026-11-23T05:00:00Z'],
    ['Asia/Kolkata', '2026-11-22T18:29:59Z', '2026-11-22T18:30:00Z'],
    ['+05:30', '2026-11-22T18:29:59Z', '2026-11-22T18:30:00Z'],
    ['-08:00', '2026-11-23T07:59:59Z', '2026-11-23T08:00:00Z'],
    ['+14:00', '2026-11-22T09:59:59Z', '2026-11-22T10:00:00Z'],
  ])('is the date in %s', (timeZone, last, first) => {
    const slot = day({ timeZone });
    expect([slot(at(last)), slot(at(first))]).toEqual(['2026-11-22', '2026-11-23']);
  });

  it('is one slot where the clocks change: of 23 hours in spring, of 25 hours in autumn', () => {
    const slot = day({ timeZone: 'Europe/Berlin' });
    expect(changes(slot, '2026-03-28T12:00:00Z', '2026-03-30T12:00:00Z')).toEqual([
      '2026-03-28T23:00:00.000Z 2026-03-29',
      '2026-03-29T22:00:00.000Z 2026-03-30',
    ]);
    expect(changes(slot, '2026-10-24T12:00:00Z', '2026-10-26T12:00:00Z')).toEqual([
      '2026-10-24T22:00:00.000Z 2026-10-25',
      '2026-10-25T23:00:00.000Z 2026-10-26',
    ]);
    // The hour that is shown twice.
    expect(slot(at('2026-10-25T00:30:00Z'))).toBe(slot(at('2026-10-25T01:30:00Z')));
  });

  it('begins at startsAt of its time zone, also after the clocks changed', () => {
    const slot = day({ timeZone: 'Europe/Berlin', startsAt: '12:00' });
    expect(changes(slot, '2026-03-27T00:00:00Z', '2026-03-30T00:00:00Z')).toEqual([
      '2026-03-27T11:00:00.000Z 2026-03-27',
      '2026-03-28T11:00:00.000Z 2026-03-28',
      '2026-03-29T10:00:00.000Z 2026-03-29',
    ]);
    // Machines whose clocks are minutes before and after midnight.
    expect(slot(at('2026-11-22T22:55:00Z'))).toBe(slot(at('2026-11-22T23:05:00Z')));
  });

  it('is the last day of a year, a leap day', () => {
    expect(day({ startsAt: '06:00' })(at('2027-01-01T05:59:00Z'))).toBe('2026-12-31');
    expect(day()(at('2028-02-29T12:00:00Z'))).toBe('2028-02-29');
  });

  it('refuses what is no time zone and no time', () => {
    const refused = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
    for (const timeZone of ['', 'Nowhere/At_All', '+25:00', '+5:30', '05:30', 5, null]) {
      expect(() => day({ timeZone: timeZone as string })).toThrow(refused);
    }
    for (const startsAt of ['24:00', '9:00', '12:60', 'noon'])
      expect(() => day({ startsAt })).toThrow(refused);
    expect(() => day({ zone: 'UTC' } as object)).toThrow(refused);
  });
});

describe('every and hour', () => {
  it('name the slot after its begin', () => {
    expect(hour()(at('2026-11-22T13:59:59.999Z'))).toBe('2026-11-22T13:00:00.000Z');
    expect(every(15 * MINUTE)(at('2026-11-22T13:14:59Z'))).toBe('2026-11-22T13:00:00.000Z');
    expect(every(15 * MINUTE)(at('2026-11-22T13:15:00Z'))).toBe('2026-11-22T13:15:00.000Z');
  });

  it('offsetMs moves the boundaries away from the job', () => {
    const slot = every(15 * MINUTE, { offsetMs: 8 * MINUTE });
    expect(slot(at('2026-11-22T13:14:00Z'))).toBe('2026-11-22T13:08:00.000Z');
    // Machines whose clocks are five minutes before and after the quarter.
    expect(slot(at('2026-11-22T13:10:00Z'))).toBe(slot(at('2026-11-22T13:20:00Z')));
  });

  it('an hour that is shown twice is two slots', () => {
    expect(hour()(at('2026-10-25T00:30:00Z'))).not.toBe(hour()(at('2026-10-25T01:30:00Z')));
  });

  it('refuse a bad length', () => {
    const refused = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
    for (const ms of [0, -1, 1.5, Number.NaN, '60']) expect(() => every(ms as number)).toThrow(refused);
    expect(() => every(1_000, { offsetMs: -1 })).toThrow(refused);
  });
});

it.each([
  ['day', day()],
  ['day in a time zone', day({ timeZone: 'America/Sao_Paulo', startsAt: '06:00' })],
  ['hour', hour()],
  ['every', every(7 * MINUTE, { offsetMs: 1 })],
])('%s: a later slot is the greater text', (_, slot) => {
  let last = slot(at('1999-12-30T00:00:00Z'));
  for (let step = 0; step < 20_000; step += 1) {
    const next = slot(at('1999-12-30T00:00:00Z') + step * 12_345_678);
    expect(next >= last).toBe(true);
    last = next;
  }
});
