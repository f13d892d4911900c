import { keysOfLock, holdersKey } from '../../../packages/redis-protocol/src/keys.ts';
import { type Script, scripts } from '../../../packages/redis-protocol/src/generated/scripts.ts';
import type { SeededRandom } from '../../src/kernel/seeded-random.ts';
import type { KeyState } from './key-state.ts';

export type ScriptName = keyof typeof scripts;

/** A script call, or a plain command when `script` is absent. */
export interface RandomStep {
  readonly name: string;
  readonly script?: Script;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

const LOCKS = ['lock::a', 'lock::b'];
const IDS = ['p', 'q', 'r', 's-1', 't_2'];
const LABELS = ['', 'host:1', 'a|b', 'ünï'];
const TTLS = [50, 333, 1_000, 30_000];
const NOTIFIES = ['=here', '=here', '=there', '~here', '!here', '=there', '=gone', '!gone'];
const WEIGHTS = ['1', '2', '7'];
const LIMITS = ['1', '3', '10'];

/** The channels that somebody listens to, with a number, so that several runs share one server. */
export const channelsOf = (run: number): readonly string[] => [`here${run}`, `there${run}`];

/** Chooses steps over few keys, from what these keys hold, so that the scripts reach all their branches. */
export class RandomSteps {
  readonly #random: SeededRandom;
  readonly #run: number;
  #states: readonly KeyState[] = [];
  #micros = 0;

  constructor(random: SeededRandom, run: number) {
    this.#random = random;
    this.#run = run;
  }

  script(name: ScriptName, states: readonly KeyState[], micros: number): RandomStep {
    this.#states = states;
    this.#micros = micros;
    return { name, script: scripts[name], ...this.#call(name) };
  }

  /** A write as a stranger, an operator or an older version may do it. */
  write(states: readonly KeyState[], micros: number): RandomStep {
    this.#states = states;
    this.#micros = micros;
    const [name = '', ...args] = this.#write();
    return { name, keys: [], args };
  }

  #call(name: ScriptName): { readonly keys: readonly string[]; readonly args: readonly string[] } {
    const random = this.#random;
    const lock = random.pick(LOCKS);
    const { token, queue } = keysOfLock(lock);
    const all = allKeys(lock);
    switch (name) {
      case 'acquire': {
        const plain = [this.#id(lock), this.#ttl(), random.pick(LABELS)];
        if (random.chance(0.4)) {
          return { keys: all.slice(0, 3), args: random.chance(0.3) ? plain : [...plain, ...this.#enqueue()] };
        }
        const enqueue = random.chance(0.3) ? ['', '', '', ''] : this.#enqueue();
        const takes = random.chance(0.15)
          ? random.pick([['steal'], ['steal'], ['adopt', this.#id(lock)]])
          : [];
        return { keys: all, args: [...plain, ...enqueue, ...this.#mode(), ...takes] };
      }
      case 'many': {
        const wanted = random.chance(0.5) ? LOCKS : [lock];
        return {
          keys: wanted.flatMap(allKeys),
          args: wanted.flatMap((each) => [this.#id(each), this.#ttl(), random.pick(LABELS), ...this.#mode()]),
        };
      }
      case 'release':
        return random.chance(0.4)
          ? { keys: all.slice(0, 3), args: [this.#id(lock), this.#notify()] }
          : { keys: all, args: [this.#id(lock), this.#notify(), random.pick(['0', ...WEIGHTS])] };
      case 'abandon': {
        const members = Array.from({ length: random.between(1, 2) }, () => this.#member(lock));
        const id = members[0]?.split('|')[0] ?? '';
        return {
          keys: [lock, token, queue],
          args: [random.chance(0.7) ? id : this.#id(lock), this.#notify(), ...members],
        };
      }
      case 'renew':
        return {
          keys: LOCKS,
          args: LOCKS.flatMap((each) => [`${this.#grant(each).join('|-|')}|`, this.#ttl()]),
        };
      case 'renewShares':
        return {
          keys: LOCKS.flatMap((each) => [each, holdersKey(keysOfLock(each))]),
          args: LOCKS.flatMap((each) => [...this.#grant(each), this.#ttl()]),
        };
      case 'check':
        return this.#check();
      case 'downgrade':
        return { keys: all, args: [this.#id(lock), this.#notify()] };
      case 'resize':
        return { keys: all, args: [random.pick(LIMITS), this.#notify()] };
      case 'forceRelease': {
        const value = this.#states.find(({ key }) => key === lock)?.value[0] ?? 'nothing';
        const only = random.pick([[], [this.#id(lock)], [value]]);
        return { keys: all, args: [this.#notify(), ...only] };
      }
      case 'inspect': {
        const [, , , holders = ''] = all;
        return { keys: [lock, queue, holders], args: random.chance(0.3) ? ['holders'] : [] };
      }
      case 'releaseKey':
        return { keys: [lock], args: [this.#id(lock)] };
      case 'renewPart':
        return random.chance(0.5)
          ? { keys: [lock], args: [this.#ttl()] }
          : { keys: [holdersKey(keysOfLock(lock))], args: [this.#ttl(), ...this.#grant(lock)] };
      case 'readWithTime':
        return { keys: ['value'], args: [] };
      case 'fencedSet':
        return {
          keys: ['value', 'fence'],
          args: [
            random.pick(['5', '17', '123456789012345678901', String(this.#micros)]),
            random.pick(['text', '', 'tëxt']),
            random.pick(['', 'keep', '500', '70000']),
            random.pick(['', '900', '80000']),
          ],
        };
      default:
        return name satisfies never;
    }
  }

  #check(): { readonly keys: readonly string[]; readonly args: readonly string[] } {
    const random = this.#random;
    const notify = this.#notify();
    const wanted = random.chance(0.5) ? LOCKS : [random.pick(LOCKS)];
    const args = [random.pick(['50', '700', '5000', '5000']), notify, random.pick(['', '', '=', '!', '~'])];
    for (const lock of wanted) {
      const queued = this.#queued(lock);
      const count = random.between(1, 3);
      args.push(String(count));
      for (let at = 0; at < count; at++) {
        const [member, position] = queued.length > 0 && random.chance(0.6) ? random.pick(queued) : [];
        const shown = member ?? this.#freshMember(lock, notify);
        const limit = / *:[1-9]/.test(shown) && random.chance(0.9) ? random.pick(LIMITS) : '';
        args.push(shown, position ?? String(this.#micros + random.between(-9, 9)), limit);
      }
    }
    return {
      keys: wanted.flatMap((lock) => {
        const { token, queue } = keysOfLock(lock);
        return [lock, token, queue];
      }),
      args,
    };
  }

  #write(): string[] {
    const random = this.#random;
    const lock = random.pick(LOCKS);
    const { token, queue } = keysOfLock(lock);
    const [, , , holders = ''] = allKeys(lock);
    const ms = Math.floor(this.#micros / 1000);
    const near = () => String(ms + random.between(-500, 500));
    switch (random.between(0, 15)) {
      case 0:
        return [
          'SET',
          lock,
          random.pick(['a stranger', '', 'p|+|', '*0|0|-|1', '*x', 'lock|-|12|']),
          'PX',
          this.#ttl(),
        ];
      case 1:
        return [
          'SET',
          lock,
          `*${random.pick(['0', ...LIMITS])}|${random.between(0, 3)}|${random.pick(['+', '-'])}|${near()}|${near()}`,
          'PX',
          this.#ttl(),
        ];
      case 2:
        return ['SET', lock, `${this.#id(lock)}|${random.pick(['+', '-'])}|${this.#micros - 5}|x`];
      case 3:
        return ['DEL', random.pick([lock, queue, holders, token])];
      case 4:
        return ['DEL', lock];
      case 5:
        return random.pick([
          ['HSET', lock, 'field', 'value'],
          ['HSET', queue, 'field', 'value'],
          ['ZADD', holders, '1', 'member'],
          ['SET', holders, 'text'],
          ['HSET', token, 'field', 'value'],
          ['HSET', 'value', 'field', 'value'],
        ]);
      case 6:
        return [
          'SET',
          token,
          random.pick([
            '',
            'x',
            '7',
            `${this.#micros + 5_000}`,
            `${this.#micros - 5};${ms + 3_000}`,
            '9007199254740991',
          ]),
        ];
      case 7:
        return [
          'HSET',
          holders,
          this.#id(lock),
          `${near()}|${this.#ttl()}|${this.#micros - 9}|${random.pick(['0', ...WEIGHTS])}|l`,
        ];
      case 8:
        return ['HSET', holders, this.#id(lock), random.pick(['', 'garbage', '1|2|3'])];
      case 9:
        return [
          'ZADD',
          queue,
          String(this.#micros + random.between(-9, 9)),
          this.#freshMember(lock, this.#notify()),
        ];
      case 10:
        return ['ZADD', queue, random.pick(['-3', '-10', '5']), '#'];
      case 11:
        return ['ZADD', queue, `-${ms + random.between(-100, 5_000)}`, `@${this.#notify()}`];
      case 12:
        return ['PEXPIRE', random.pick([lock, queue, holders]), String(random.between(1, 2_000))];
      case 13:
        return ['ZADD', queue, random.pick(['1', '2.5', '1e20']), random.pick(['junk', '|', 'p|x|=here|'])];
      case 14:
        return ['PERSIST', random.pick([lock, queue, holders])];
      default:
        return ['SET', 'fence', random.pick(['9', '18', 'x']), 'PX', this.#ttl()];
    }
  }

  /** Most often one that holds or waits for this lock. */
  #id(lock: string): string {
    const random = this.#random;
    if (random.chance(0.3)) return random.pick(IDS);
    const [, , queue = '', holders = ''] = allKeys(lock);
    const key = random.pick([lock, lock, holders, holders, queue]);
    const { type, value = [] } = this.#states.find((state) => state.key === key) ?? {};
    const known = type === 'string' ? value : value.filter((_, at) => at % 2 === 0);
    const id = known.length > 0 ? (random.pick(known).split('|')[0] ?? '') : '';
    return /^[\w-]+$/.test(id) ? id : random.pick(IDS);
  }

  #ttl(): string {
    return String(this.#random.pick(TTLS));
  }

  #notify(): string {
    return `${this.#random.pick(NOTIFIES)}${this.#run}`;
  }

  /** An id with its token, if it holds. */
  #grant(lock: string): readonly [id: string, token: string] {
    const id = this.#id(lock);
    const value = this.#states.find(({ key }) => key === lock)?.value[0] ?? '';
    const fields = this.#states.find(({ key }) => key === `{${lock}}:h`)?.value ?? [];
    const share = fields[fields.indexOf(id) + 1] ?? '';
    const tokens = [/^[^|*]+\|[+-]\|(\d+)\|/.exec(value)?.[1], share.split('|')[2]];
    return [id, this.#random.pick([...tokens.filter((token) => token !== undefined), '7'])];
  }

  #enqueue(): readonly string[] {
    const random = this.#random;
    const aliveMs = random.pick(['50', '700', '5000', '5000']);
    return [this.#notify(), aliveMs, random.pick(['', '', '2']), random.pick(['', '', 'refreshed'])];
  }

  #mode(): readonly [limit: string, weight: string] {
    const random = this.#random;
    if (random.chance(0.5)) return ['0', random.pick(['', '0', '0'])];
    return [random.pick(['3', '3', ...LIMITS]), random.pick(WEIGHTS)];
  }

  #freshMember(lock: string, notify: string): string {
    const weight = this.#random.pick(['', ':0', ':1', ':2']);
    return `${this.#id(lock)}|${this.#random.pick([50, 100, 2_000])}${weight}|${notify}|${this.#random.pick(LABELS)}`;
  }

  #member(lock: string): string {
    const queued = this.#queued(lock);
    return queued.length > 0 && this.#random.chance(0.8)
      ? this.#random.pick(queued)[0]
      : this.#freshMember(lock, this.#notify());
  }

  #queued(lock: string): readonly (readonly [member: string, position: string])[] {
    const { queue } = keysOfLock(lock);
    const { type, value = [] } = this.#states.find(({ key }) => key === queue) ?? {};
    if (type !== 'zset') return [];
    const pairs = value.flatMap((member, at) =>
      at % 2 === 0 ? [[member, value[at + 1] ?? ''] as const] : [],
    );
    return pairs.filter(([member, position]) => member.includes('|') && /^\d+$/.test(position));
  }
}

function allKeys(lock: string): readonly string[] {
  const keys = keysOfLock(lock);
  return [keys.lock, keys.token, keys.queue, holdersKey(keys)];
}
