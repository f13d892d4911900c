export { adopt, type AdoptOptions } from './adopt.ts';
export { transfer, type TransferOptions } from './transfer.ts';
export type { TransferTicket } from './ticket.ts';
