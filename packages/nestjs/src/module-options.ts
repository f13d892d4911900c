import type { ManagerOptions } from '@locks/core';
import {
  type LockBackend,
  matching,
  milliseconds,
  mustBe,
  oneOf,
  optional,
  type OptionsRead,
  type OptionTable,
  readOptions,
} from '@locks/core/backend';
import type { SlotStore } from '@locks/once';
import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';

/** Options of `LocksModule`. */
export interface LocksModuleOptions {
  /**
   * The store of the locks, as `redisBackend(client)`. A function is called once for each application, so that one module class
   * can be used by several, as tests do: the shutdown of an application closes its backend.
   */
  readonly backend: LockBackend | (() => LockBackend);
  /** Defaults for all locks: the options of `createLocks()`. */
  readonly defaults?: ManagerOptions | undefined;
  /** The slot store of every `@Once` that has none of its own. */
  readonly slots?: SlotStore | undefined;
  /**
   * The longest time for which the shutdown waits for work that holds a lock, in milliseconds. Locks that are held go on
   * meanwhile, new ones are refused with `LOCK_CLOSED`. Choose less than the time between SIGTERM and SIGKILL, which is 30 s in
   * Kubernetes. `Infinity`: until all are released.
   * @defaultValue 10 000
   */
  readonly drainMs?: number | undefined;
  /** Runs once the locks are closed: the place to close the client that the backend was given. */
  readonly afterClose?: (() => unknown) | undefined;
}

/** The modules in which the locks can be injected. */
export interface Visibility {
  /**
   * `true`: in every module. `false`: in modules that import `LocksModule`.
   * @defaultValue false
   */
  readonly isGlobal?: boolean | undefined;
}

/** A class that gives the options, for `useClass` and `useExisting`. */
export interface LocksModuleOptionsFactory {
  /** Called once for each application. */
  createLocksOptions(): LocksModuleOptions | Promise<LocksModuleOptions>;
}

/** Options of `LocksModule.forRootAsync`: one of `useFactory`, `useClass` and `useExisting`. */
export interface LocksModuleAsyncOptions extends Visibility {
  /** Modules whose providers `inject` or the class needs. */
  readonly imports?: ModuleMetadata['imports'] | undefined;
  /** Tokens of the arguments of `useFactory`. */
  readonly inject?: readonly (InjectionToken | OptionalFactoryDependency)[] | undefined;
  /** Gives the options. */
  readonly useFactory?: ((...args: never[]) => LocksModuleOptions | Promise<LocksModuleOptions>) | undefined;
  /** A class that Nest makes for this module alone. */
  readonly useClass?: Type<LocksModuleOptionsFactory> | undefined;
  /** The token of a provider of the imported modules. */
  readonly useExisting?: InjectionToken | undefined;
}

const isFunction = (value: unknown): value is () => never => typeof value === 'function';
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** A reader of an {@link SlotStore}. */
export const readSlotStore = matching(
  'an object with the functions read and write',
  (value): value is SlotStore =>
    isObject(value) && isFunction((value as SlotStore).read) && isFunction((value as SlotStore).write),
);

const TABLE = {
  backend: matching(
    'a backend, or a function that gives one',
    (value): value is LocksModuleOptions['backend'] => isFunction(value) || isObject(value),
  ),
  // createLocks() checks the content of `defaults`.
  defaults: (value) => value as ManagerOptions | undefined,
  slots: optional(readSlotStore),
  drainMs: optional(milliseconds(0, Number.POSITIVE_INFINITY), 10_000),
  afterClose: optional(
    matching(
      'a function',
      isFunction as (value: unknown) => value is NonNullable<LocksModuleOptions['afterClose']>,
    ),
  ),
} satisfies OptionTable<LocksModuleOptions>;

const IS_GLOBAL = optional(oneOf(true, false), false);
const ROOT_TABLE = { ...TABLE, isGlobal: IS_GLOBAL } satisfies OptionTable<LocksModuleOptions & Visibility>;
const isList = (value: unknown): value is readonly never[] => Array.isArray(value);
const ASYNC_TABLE = {
  imports: optional(matching('an array of modules', isList)),
  inject: optional(matching('an array of injection tokens', isList)),
  useFactory: optional(matching('a function', isFunction)),
  useClass: optional(matching('a class', isFunction)),
  useExisting: (value) => value,
  isGlobal: IS_GLOBAL,
} satisfies OptionTable<LocksModuleAsyncOptions>;

/** Checks and gives the value of a provider of {@link LOCKS_OPTIONS}. */
export function readModuleOptions(given: unknown): OptionsRead<typeof TABLE> {
  return readOptions('LocksModule', given, TABLE);
}

export function readRootOptions(given: unknown): OptionsRead<typeof ROOT_TABLE> {
  return readOptions('LocksModule.forRoot()', given, ROOT_TABLE);
}

export function readAsyncOptions(given: unknown): { readonly isGlobal: boolean } {
  const { isGlobal, useFactory, useClass, useExisting } = readOptions(
    'LocksModule.forRootAsync()',
    given,
    ASYNC_TABLE,
  );
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    throw mustBe(
      'LocksModule.forRootAsync()',
      'given exactly one of useFactory, useClass and useExisting',
      ways.length,
    );
  }
  return { isGlobal };
}
