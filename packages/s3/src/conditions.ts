import { randomUUID } from 'node:crypto';
import { DeleteObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { ConditionsIgnoredError, statusOf } from './s3-errors.ts';

/** What the provider of a bucket does with conditional requests. */
export interface Conditions {
  /** Whether a deletion honours `If-Match`. */
  readonly compareOnDelete: boolean;
}

/** No object has this ETag: it is that of no content of ours. */
const OTHER_ETAG = '"00000000000000000000000000000000"';

/** By client, and by bucket and prefix: each is asked once by a process. */
const asked = new WeakMap<S3Client, Map<string, Promise<Conditions>>>();

/**
 * Tries whether the provider compares: one that ignores the headers would let two hold the same lock. Writes an object `probe`,
 * which stays.
 *
 * @throws ConditionsIgnoredError where it does not
 */
export function conditionsOf(
  client: S3Client,
  bucket: string,
  prefix: string,
  abortSignal: AbortSignal,
): Promise<Conditions> {
  const ofClient = asked.get(client) ?? new Map<string, Promise<Conditions>>();
  asked.set(client, ofClient);
  const name = `${bucket}/${prefix}`;
  const known = ofClient.get(name);
  if (known !== undefined) return known;
  const conditions = ask(client, { Bucket: bucket, Key: `${prefix}probe` }, abortSignal);
  ofClient.set(name, conditions);
  // The next call asks again.
  conditions.catch(() => ofClient.delete(name));
  return conditions;
}

async function ask(
  client: S3Client,
  object: { readonly Bucket: string; readonly Key: string },
  abortSignal: AbortSignal,
): Promise<Conditions> {
  const put = async (
    Key: string,
    condition: { IfNoneMatch: '*' } | { IfMatch: string },
  ): Promise<boolean> => {
    const Body = new TextEncoder().encode('Whether conditional writes are honoured here (@locks/s3).\n');
    const command = new PutObjectCommand({ ...object, Key, Body, ...condition });
    return await refuses(client.send(command, { abortSignal }));
  };
  const { Bucket, Key } = object;
  // The first one writes the object, unless it is there.
  const isNew = !(await put(Key, { IfNoneMatch: '*' }));
  if (isNew && !(await put(Key, { IfNoneMatch: '*' }))) throw ignored(Bucket, 'If-None-Match');
  if (!(await put(Key, { IfMatch: OTHER_ETAG }))) throw ignored(Bucket, 'If-Match');
  // Releases of MinIO write an object that is not there (minio/minio#21526).
  const absent = `${Key}-${randomUUID()}`;
  if (!(await put(absent, { IfMatch: OTHER_ETAG }))) {
    await client.send(new DeleteObjectCommand({ Bucket, Key: absent }), { abortSignal });
    throw ignored(Bucket, 'If-Match for an object that is not there');
  }
  const deletion = new DeleteObjectCommand({ ...object, IfMatch: OTHER_ETAG });
  return { compareOnDelete: await refuses(client.send(deletion, { abortSignal })).catch(notImplemented) };
}

/** Whether a request was refused for its condition, or for another request at the same time: then too the condition was looked at. */
async function refuses(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return false;
  } catch (error) {
    const status = statusOf(error);
    if (status === 412 || status === 409 || (error as Error).name === 'NoSuchKey') return true;
    throw error;
  }
}

function notImplemented(error: unknown): false {
  if (statusOf(error) === 501) return false;
  throw error;
}

function ignored(bucket: string, header: string): Error {
  return new ConditionsIgnoredError(
    `@locks/s3: the provider of the bucket "${bucket}" ignores ${header}: on it two processes could hold the same lock. ` +
      'Use a provider that honours conditional writes.',
  );
}
