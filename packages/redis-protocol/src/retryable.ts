import { invalidArgument } from '@locks/core/backend';

// Replies that a healthy deployment gives for a short time: start, failover, migration, a long-running script, and a script that could
// not be sent again because the call was over (`recover`).
const passingReply =
  /^(?:LOADING|CLUSTERDOWN|TRYAGAIN|READONLY|MASTERDOWN|NOREPLICAS|NOMASTERLINK|BUSY|MOVED|ASK|UNBLOCKED|NOSCRIPT)\b/;
const passingCode =
  /^(?:ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EAI_AGAIN|ENOTFOUND|NR_CLOSED|ERR_REDIS_CONNECTION_\w+)$/;
const passingName =
  /^(?:MaxRetriesPerRequestError|ClusterAllFailedError|SocketClosedUnexpectedlyError|SocketTimeoutError|SocketTimeoutDuringMaintenanceError|ConnectionTimeoutError|CommandTimeoutDuringMaintenanceError|ClientOfflineError|DisconnectsClientError|TimeoutError|RootNodesUnavailableError|MaxCommandRedirectionsError|ConnectionError|ClosingError|CircuitBreakerError|RestRequestError)$/;
const passingMessage =
  /^(?:Connection is closed\.|Command timed out|Stream isn't writeable|Socket timeout|Socket closed|Too many Cluster redirections|Failed to refresh slots cache|All sentinels are unreachable|None of the sentinels|Connection timeout|Cluster isn't ready|Reached maximum inflight requests|Connection (?:in recovery|dropped|closed)\b|No primary node found)/;

/** Whether the same command may succeed if it is repeated. Unknown errors are not repeated. */
export function isRetryableRedisError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (
    isHalfDone(error) ||
    passingReply.test(error.message) ||
    passingMessage.test(error.message) ||
    (typeof code === 'string' && passingCode.test(code)) ||
    passingName.test(error.name) ||
    passingName.test(error.constructor.name)
  );
}

/** The replies that only nodes of a cluster give. */
const clusterReply = /^(?:MOVED|ASK|CLUSTERDOWN|CROSSSLOT)\b/;

/** The refusal of a client for one server that got the reply of a cluster's node: only a few of its commands could succeed. */
export function wrongClient(error: unknown): Error | undefined {
  if (!(error instanceof Error) || !clusterReply.test(error.message)) return undefined;
  return invalidArgument(
    'the server is a node of a Redis Cluster, and the client is one for a single server: pass a cluster client ' +
      `(new Cluster(…) of ioredis, createCluster(…) of redis). The server replied: ${error.message}`,
  );
}

/** Whether the server does not know a script. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/**
 * Whether a script stopped half done: it deleted a key of a slot that is being migrated and may not write the key again here.
 */
export function isHalfDone(error: unknown): boolean {
  return error instanceof Error && error.message.includes('attempted to access a non local key');
}

/**
 * Whether a slot is being migrated, with some keys of the command on each of two nodes. Clients repeat such a command on one
 * node after the other, and report too many redirections in the end.
 */
export function isSplitSlot(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    isHalfDone(error) ||
    error.message.startsWith('TRYAGAIN') ||
    error.message.startsWith('Too many Cluster redirections') ||
    error.constructor.name === 'MaxCommandRedirectionsError'
  );
}
