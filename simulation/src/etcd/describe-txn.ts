import type { IRequestOp, ITxnRequest } from 'etcd3';

/** A transaction as a line of a timeline shows it: what it may write. */
export function describeTxn(request: ITxnRequest): string {
  const writes = writesOf(request);
  return writes.length === 0 ? `read ${readsOf(request).join(', ')}` : writes.join(', ');
}

function writesOf({ success = [], failure = [] }: ITxnRequest): string[] {
  return [...success, ...failure].flatMap(
    ({ request_put: put, request_delete_range: remove, request_txn: nested }) => {
      if (put !== undefined) return [`put ${String(put.key)} ${String(put.value ?? '').split('{')[0]}`];
      if (remove !== undefined) return [`delete ${String(remove.key)}`];
      return nested === undefined ? [] : writesOf(nested).map((write) => `${write} perhaps`);
    },
  );
}

function readsOf({ success = [] }: ITxnRequest): string[] {
  return success.flatMap(({ request_range: range }: IRequestOp) =>
    range === undefined ? [] : [String(range.key)],
  );
}
