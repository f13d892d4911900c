/** What an API server sends instead of an object. */
export interface KubeStatus {
  readonly message?: string;
  /** Which object it is about. */
  readonly details?: { readonly kind?: string; readonly name?: string };
}

/** The answer of an API server that refused a request. */
export class KubeStatusError extends Error {
  override readonly name = 'KubeStatusError';
  /** The status of HTTP. */
  readonly status: number;
  /** What Kubernetes says of it. */
  readonly details: KubeStatus;
  /** The time of the API server that answered, in milliseconds since 1970. */
  readonly now: number | undefined;

  constructor(status: number, details: KubeStatus, now: number | undefined) {
    super(details.message || `HTTP status ${status}`);
    this.status = status;
    this.details = details;
    this.now = now;
  }

  /** Whether there is no Lease of this name. An API server that has no Leases at all, or a proxy, says 404 too. */
  isAbsent(name: string): boolean {
    return this.status === 404 && this.details.details?.name === name;
  }
}

/** A Lease with the name of a record, which something else has made. */
export class ForeignLeaseError extends Error {
  override readonly name = 'ForeignLeaseError';

  constructor(name: string, namespace: string) {
    super(
      `the Lease ${name} in the namespace ${namespace} is not one of @locks/kubernetes: delete it, or choose another prefix`,
    );
  }
}

/** `Expired`: what a watch or the next page of a list refers to is gone. It is begun again. */
export const GONE = 410;
const TIMEOUT = 408;
const TOO_MANY = 429;

/** Of Node, where no answer came. */
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENETRESET',
  'EAI_AGAIN',
  'ENOTFOUND',
  'ABORT_ERR',
]);

/** Whether no answer came. The request may have been carried out. */
export function isNetworkError(error: unknown): boolean {
  return NETWORK_CODES.has((error as { readonly code?: unknown } | null)?.code as string);
}

export function isRetryableError(error: unknown): boolean {
  if (!(error instanceof KubeStatusError)) return isNetworkError(error);
  // 429 is throttling by priority and fairness; 5xx an API server that starts, stops, or does not reach etcd.
  return [TIMEOUT, GONE, TOO_MANY].includes(error.status) || error.status >= 500;
}

/** The same error, in a message that says what to do. */
export function explained(error: unknown, namespace: string): unknown {
  if (!(error instanceof KubeStatusError)) return error;
  const { status, details, message, now } = error;
  const toDo = WHAT_TO_DO[status]?.(namespace);
  return toDo === undefined
    ? error
    : new KubeStatusError(status, { ...details, message: `${toDo} (${status}: ${message})` }, now);
}

const WHAT_TO_DO: Readonly<Record<number, (namespace: string) => string>> = {
  401: () => 'Kubernetes does not accept the credentials of the kubeConfig',
  403: (namespace) =>
    `the user or service account of the kubeConfig needs a Role in the namespace ${namespace}, with ` +
    'apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, update, delete]',
  404: (namespace) =>
    `Kubernetes knows no namespace ${namespace}, or no Leases; create it, or pass another namespace`,
  413: () => 'the value is too long for Kubernetes',
  422: () => 'Kubernetes takes the Lease for invalid',
};
