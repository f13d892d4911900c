import { createLocks, type LockManager } from '@locks/core';
import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  type InjectionToken,
  Module,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import {
  type LocksModuleAsyncOptions,
  type LocksModuleOptions,
  type LocksModuleOptionsFactory,
  readAsyncOptions,
  readModuleOptions,
  readRootOptions,
  type Visibility,
} from './module-options.ts';
import { LOCKS, LOCKS_OPTIONS, ONCE_RECORD } from './tokens.ts';

// setup: import { createLocks } from '@locks/core'; import { LocksModule } from '@locks/nestjs'; import { redisBackend } from '@locks/redis-ioredis';
// setup: import { Module } from '@nestjs/common'; import { Redis } from 'ioredis';
/**
 * Makes the lock manager of an application, lets it be injected, and closes it at shutdown: work that holds a lock may end first.
 * Signals of the system begin a shutdown only after `app.enableShutdownHooks()`.
 *
 * @example
 * ```ts
 * @Module({
 *   imports: [
 *     LocksModule.forRootAsync({
 *       isGlobal: true,
 *       useFactory: () => {
 *         const redis = new Redis();
 *         return { backend: redisBackend(redis), drainMs: 20_000, afterClose: () => redis.quit() };
 *       },
 *     }),
 *   ],
 * })
 * class AppModule {}
 * ```
 */
export class LocksModule implements OnApplicationShutdown {
  readonly #locks: LockManager;
  readonly #options: LocksModuleOptions;

  /** Called by Nest. */
  constructor(locks: LockManager, options: LocksModuleOptions) {
    this.#locks = locks;
    this.#options = options;
  }

  /**
   * The module with options that are known when the class is declared.
   * @throws LockError `LOCK_INVALID_ARGUMENT`; a backend that contradicts itself is refused when the application starts
   */
  static forRoot(options: LocksModuleOptions & Visibility): DynamicModule {
    const { isGlobal, ...checked } = readRootOptions(options);
    return moduleOf({ provide: LOCKS_OPTIONS, useValue: checked }, isGlobal);
  }

  /**
   * The module with options that other providers give, as those of a configuration.
   * @throws LockError `LOCK_INVALID_ARGUMENT`; what the factory gives is checked when the application starts
   */
  static forRootAsync(options: LocksModuleAsyncOptions): DynamicModule {
    const { isGlobal } = readAsyncOptions(options);
    const { imports = [], useClass } = options;
    const made = moduleOf(optionsProviderOf(options), isGlobal);
    const own = useClass === undefined ? [] : [useClass];
    return { ...made, imports, providers: [...own, ...(made.providers ?? [])] };
  }

  /**
   * Closes the locks. Nest calls it when no request is in flight any more; work that holds a lock in the background has
   * `drainMs` to end.
   * @throws LockError `LOCK_BACKEND`, as `close()` of the manager; what `afterClose` rejects with
   */
  async onApplicationShutdown(): Promise<void> {
    const { drainMs, afterClose } = readModuleOptions(this.#options);
    try {
      await this.#locks.close({ drainMs });
    } finally {
      await afterClose?.();
    }
  }
}

// Decorators as functions: syntax that has to be compiled away is not in these sources.
Inject(LOCKS)(LocksModule, undefined, 0);
Inject(LOCKS_OPTIONS)(LocksModule, undefined, 1);
Module({})(LocksModule);

function moduleOf(options: Provider, isGlobal: boolean): DynamicModule {
  return {
    module: LocksModule,
    global: isGlobal,
    providers: [options, LOCKS_PROVIDER, RECORD_PROVIDER],
    exports: [LOCKS, ONCE_RECORD],
  };
}

const LOCKS_PROVIDER: FactoryProvider<LockManager> = {
  provide: LOCKS,
  inject: [LOCKS_OPTIONS],
  useFactory: (given: unknown) => {
    const { backend, defaults } = readModuleOptions(given);
    // The types cannot know which capabilities the backend has; `InjectLocks` leaves them to the parameter's type.
    return createLocks(typeof backend === 'function' ? backend() : backend, defaults) as LockManager;
  },
};

const RECORD_PROVIDER: FactoryProvider = {
  provide: ONCE_RECORD,
  inject: [LOCKS_OPTIONS],
  // Nest does not inject `null`: a method of @Once() then finds no slot store, and says so.
  useFactory: (given: unknown) => readModuleOptions(given).slots ?? null,
};

function optionsProviderOf({ useFactory, inject, useClass, useExisting }: LocksModuleAsyncOptions): Provider {
  if (useFactory !== undefined) {
    return { provide: LOCKS_OPTIONS, useFactory: useFactory as () => unknown, inject: [...(inject ?? [])] };
  }
  return {
    provide: LOCKS_OPTIONS,
    inject: [(useClass ?? useExisting) as InjectionToken],
    useFactory: (factory: LocksModuleOptionsFactory) => factory.createLocksOptions(),
  };
}
