export { LocksModule } from './locks-module.ts';
export type {
  LocksModuleAsyncOptions,
  LocksModuleOptions,
  LocksModuleOptionsFactory,
  Visibility,
} from './module-options.ts';
export { Locked } from './locked.ts';
export { Once, type OnceMethodDecorator, type OnceMethodOptions } from './once.ts';
export { InjectLocks, LOCKS, LOCKS_OPTIONS, ONCE_RECORD } from './tokens.ts';
