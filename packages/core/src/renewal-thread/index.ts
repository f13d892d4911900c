export type { RenewalThread } from '../lifetime/renewal-thread.ts';
export { renewalThread, type RenewalThreadOptions } from './renewal-thread.ts';
