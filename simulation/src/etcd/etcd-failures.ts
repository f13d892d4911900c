// The adapter tells errors apart by the names of their classes, which are those of `etcd3`.

/** A call or a stream failed; `code` is that of gRPC. */
export class GRPCUnavailableError extends Error {
  readonly code = 14;
}

export class GRPCDeadlineExceededError extends Error {
  readonly code = 4;
}

export class GRPCCancelledError extends Error {
  readonly code = 1;
}

/** No such lease: it has ended, or was never granted. */
export class EtcdLeaseInvalidError extends Error {}

/** A request that a server refuses, however often it is sent. */
export class EtcdRefusal extends Error {}

/** Whether `etcd3` sends a call again that failed like this. */
export function isSentAgain(error: unknown): boolean {
  return error instanceof GRPCUnavailableError || error instanceof GRPCDeadlineExceededError;
}
