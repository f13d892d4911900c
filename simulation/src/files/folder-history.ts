import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Seen } from './steps.ts';

/** What was true of a record from a step on. */
interface State {
  readonly step: number;
  /** Who made it so; `undefined`: it was so from the start. */
  readonly by: number | undefined;
  readonly seen: Seen;
}

const START: State = { step: 0, by: undefined, seen: 'absent' };
const ESCAPED = /=([0-9a-f]{2})/g;

/** What is true of the records of a folder, step by step, read behind the back of the code. It shares nothing with that. */
export class FolderHistory {
  readonly #folder: string;
  readonly #states = new Map<string, State[]>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  get keys(): readonly string[] {
    return [...this.#states.keys()];
  }

  /** The state of a record now. */
  now(key: string): Seen {
    return this.#of(key).at(-1)?.seen ?? 'absent';
  }

  /** All states of a record from one step to another, the one that was true at the first included. */
  between(key: string, from: number, to: number): readonly State[] {
    const states = this.#of(key);
    const first = states.findLastIndex(({ step }) => step <= from);
    return states.slice(first).filter(({ step }) => step <= to);
  }

  /**
   * Looks at all records behind a step. Gives which rule is broken, and how.
   *
   * @param written - the record that the process writes: another one keeps its value
   */
  look(
    step: number,
    by: number,
    written: string | undefined,
  ): readonly [rule: string, how: string] | undefined {
    const keys = namesIn(join(this.#folder, 'k'));
    for (const key of new Set([...keys.map(unescaped), ...this.#states.keys()])) {
      const name = keys.find((one) => unescaped(one) === key);
      const pointers = name === undefined ? [] : namesIn(join(this.#folder, 'k', name));
      if (pointers.length > 1)
        return ['compare and swap', `${key} has two pointers, ${pointers.join(' and ')}`];
      const before = this.now(key);
      const [version] = pointers;
      if (version === (before === 'absent' ? undefined : before.version)) continue;
      const states = this.#of(key);
      if (version === undefined) states.push({ step, by, seen: 'absent' });
      else {
        const value = this.#valueOf(version);
        if (value === undefined)
          return ['values', `${key} has the pointer ${version}, and its value is gone`];
        if (before !== 'absent' && numberOf(version) <= numberOf(before.version))
          return ['compare and swap', `${key} has ${version} behind ${before.version}`];
        states.push({ step, by, seen: { version, value } });
      }
      if (key !== written && valueIn(this.now(key)) !== valueIn(before))
        return [
          'sweeps',
          `${by} changes ${key} from ${JSON.stringify(before)}, and writes ${written ?? 'nothing'}`,
        ];
    }
    return undefined;
  }

  /** Whether all values that pointers name are there. Gives what is wrong. */
  lookAtValues(): string | undefined {
    for (const key of this.keys) {
      const seen = this.now(key);
      if (seen !== 'absent' && this.#valueOf(seen.version) !== seen.value)
        return `${key} has the pointer ${seen.version}, and its value is gone`;
    }
    return undefined;
  }

  #of(key: string): State[] {
    let states = this.#states.get(key);
    if (states === undefined) this.#states.set(key, (states = [START]));
    return states;
  }

  #valueOf(version: string): string | undefined {
    const [, , writer = '', place = ''] = version.split('.');
    const [offset = 0, length = 0] = place.split('-').map((digits) => Number.parseInt(digits, 36));
    try {
      const file = openSync(join(this.#folder, 'v', writer), 'r');
      const value = Buffer.alloc(length);
      const bytes = readSync(file, value, 0, length, offset);
      closeSync(file);
      return bytes === length ? value.toString() : undefined;
    } catch {
      return undefined;
    }
  }
}

function valueIn(seen: Seen): string | undefined {
  return seen === 'absent' ? undefined : seen.value;
}

export function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function numberOf(version: string): number {
  return Number.parseInt(version.split('.')[0] ?? '', 36);
}

function unescaped(name: string): string {
  return name.replaceAll(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
