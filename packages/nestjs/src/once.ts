import {
  matching,
  milliseconds,
  MAX_TIMEOUT_MS,
  mustBe,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { once, type OnceOptions, type OnceResult, type OnceRun, type Slot } from '@locks/once';
import { Logger } from '@nestjs/common';
import { injectLocks, injectSlots, locksOf, methodOf, slotsOf } from './injected.ts';
import { readSlotStore } from './module-options.ts';

/** Options of {@link Once}: those of `once` of `@locks/once`, without `signal`. All times are milliseconds. */
export interface OnceMethodOptions extends Omit<OnceOptions, 'slots' | 'signal'> {
  /** The slot store of the slots that were done. Default: the slot store of `LocksModule`. */
  readonly slots?: OnceOptions['slots'] | undefined;
  /**
   * Called with the outcome of every call. Default: Nest's logger gets it, at the level `debug`, `overtaken` as a warning, and a slot store
   * that is ahead as an error.
   */
  readonly onResult?: ((result: OnceResult<void>) => void) | undefined;
}

/** A decorator of TypeScript's `experimentalDecorators` for a method that takes at most the run, and gives nothing. */
export type OnceMethodDecorator = <M extends (run: OnceRun) => Promise<void>>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => TypedPropertyDescriptor<M>;

type OnResult = NonNullable<OnceMethodOptions['onResult']>;
const isFunction = (value: unknown): value is () => never => typeof value === 'function';
const aFunction = <F>() =>
  matching('a function', isFunction as (value: unknown) => value is F & (() => never));

const TABLE = {
  slot: aFunction<Slot>(),
  atMostMs: wholeNumber(10, MAX_TIMEOUT_MS, 'milliseconds'),
  keepAlive: optional(oneOf(true, false)),
  maxRunMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  atLeastMs: optional(wholeNumber(0, MAX_TIMEOUT_MS, 'milliseconds')),
  slots: optional(readSlotStore),
  retry: oneOf('next-machine', 'next-slot'),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY)),
  label: optional(text('a string', /^/)),
  clock: optional(aFunction<() => number>()),
  onResult: optional(aFunction<OnResult>()),
} satisfies OptionTable<OnceMethodOptions>;

// setup: import { Once } from '@locks/nestjs'; import { day, type OnceRun } from '@locks/once'; import { Injectable } from '@nestjs/common';
/**
 * A method that runs once per slot, on whatever machine: `once` of `@locks/once` with the manager and the slot store of the
 * application. Every machine may call it, for example from its cron: the method runs where the slot is still to do, and gets
 * the run as its argument.
 *
 * @param name - the name of the work and of its lock: the same on every machine, whatever a bundler calls the class
 * @throws LockError `LOCK_INVALID_ARGUMENT`; the decorated method rejects as `once`, and with `LOCK_INVALID_ARGUMENT` without a slot store,
 * or on an instance that Nest has not made
 * @example
 * ```ts
 * @Injectable()
 * class Invoices {
 *   // Under the @Cron() of @nestjs/schedule, for example.
 *   @Once('invoices', { slot: day({ timeZone: 'Europe/Berlin' }), atMostMs: 600_000, retry: 'next-machine' })
 *   async send(run?: OnceRun): Promise<void> {
 *     run?.assertValid();
 *   }
 * }
 * ```
 */
export function Once(name: string, options: OnceMethodOptions): OnceMethodDecorator {
  if (typeof name !== 'string' || name === '') throw mustBe('@Once(): the name', 'a non-empty string', name);
  const { slots, onResult = logResult(name), ...times } = readOptions('@Once()', options, TABLE);
  const decorate = (target: unknown, member: unknown, found: unknown): unknown => {
    const method = methodOf('@Once()', target, member, found);
    injectLocks(method);
    if (slots === undefined) injectSlots(method);
    const { descriptor } = method;
    const work = descriptor.value as (this: object, run: OnceRun) => Promise<void>;
    const replacement = async function (this: object): Promise<void> {
      const locks = locksOf('@Once()', this);
      const all = { ...times, slots: slots ?? slotsOf('@Once()', this) };
      onResult(await once(locks, name, (run) => work.call(this, run), all));
    };
    copyMetadata(work, replacement);
    return { ...descriptor, value: replacement };
  };
  return decorate as OnceMethodDecorator;
}

function logResult(name: string): OnResult {
  const logger = new Logger('Once');
  return (result) => {
    const { status, slot } = result;
    const line = `${name}, ${slot}: ${status}`;
    if (status === 'overtaken') logger.warn(line);
    else if (status === 'slot-over' && result.isSlotAhead)
      logger.error(
        `${line}: the recorded slot ${result.recorded.slot} lies in the future; resetSlot() of @locks/once ends that`,
      );
    else logger.debug(line);
  };
}

/** Copies the metadata that other decorators, as `@Cron()`, keep on the function of the method. */
function copyMetadata(from: object, to: object): void {
  for (const key of Reflect.getOwnMetadataKeys(from))
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, from), to);
}
