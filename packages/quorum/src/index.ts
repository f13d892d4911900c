export { quorumBackend, type QuorumBackend } from './quorum-backend.ts';
export type { QuorumCapabilities } from './quorum-capabilities.ts';
export type { QuorumOptions } from './quorum-options.ts';
export type { QuorumError } from './quorum-error.ts';
