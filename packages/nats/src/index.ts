// KERNEL
export type { NatsBackendOptions } from './options.ts';
