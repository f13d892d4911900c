export { adopt, type AdoptOptions } from './adopt.ts';
export { handOver, type HandOverOptions } from './hand-over.ts';
export type { HandOverTicket } from './ticket.ts';
