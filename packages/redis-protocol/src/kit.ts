// What the ports of clients and another protocol on them need, without the scripts of this one: `@locks/redisson`.
export { renewalReplies } from './generated/renewal-replies.ts';
export { refusedLogin, undoLate } from './login-watch.ts';
export { OpenedConnections } from './opened-connections.ts';
export { decodeRenewalStatus } from './renewal-status.ts';
export { listIn, partsOf, refuseQueued, tokenIn, UnexpectedReplyError, wholeIn } from './reply-shape.ts';
export { isRetryableRedisError } from './retryable.ts';
export { isOver, mayAlwaysRepeat, runScript, type Script } from './run-script.ts';
export { slotOf } from './slot.ts';
