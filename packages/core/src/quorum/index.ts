export { quorumBackend, type QuorumBackend, type QuorumCapabilities } from './quorum-backend.ts';
export type { QuorumOptions } from './quorum-options.ts';
export { QuorumError } from './quorum-error.ts';
