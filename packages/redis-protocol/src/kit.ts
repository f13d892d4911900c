// What another protocol needs on the port of a client, without the scripts of this one: `@locks/redisson`.
export { renewalReplies } from './generated/scripts.ts';
export { refusedLogin, undoLate } from './login-watch.ts';
export { decodeRenewalStatus } from './replies.ts';
export { listIn, partsOf, refuseQueued, tokenIn, UnexpectedReplyError, wholeIn } from './reply-shape.ts';
export { isRetryableRedisError } from './retryable.ts';
export { runScript, type Script } from './run-script.ts';
export { slotOf } from './slot.ts';
