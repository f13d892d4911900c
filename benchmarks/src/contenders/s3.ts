import { randomUUID } from 'node:crypto';
import type { S3Client } from '@aws-sdk/client-s3';
import { AWS, counting, isConflict } from './aws.ts';
import { backend } from './clients.ts';
import { type Client, type Contender, foreign, ours, pauseBetweenPolls, TTL_MS } from './contender.ts';

const store = 's3';
export const S3_BUCKET = 'locks';

const client: Client<S3Client> = {
  packages: ['@aws-sdk/client-s3'],
  async connect(endpoint) {
    const { HeadBucketCommand, S3Client: Sdk } = await import('@aws-sdk/client-s3');
    const opened = counting(new Sdk({ endpoint, forcePathStyle: true, ...AWS }));
    const ping = () => opened.send(new HeadBucketCommand({ Bucket: S3_BUCKET }));
    return { client: opened, ping, close: () => opened.destroy() };
  },
};

/** An object that must not be there, and its deletion. No token and no queue; a dead holder's object stays. */
const rawPut = foreign({ store, name: 'raw If-None-Match', kind: 'floor' }, client, async (s3) => {
  const { DeleteObjectCommand, PutObjectCommand } = await import('@aws-sdk/client-s3');
  return async (name) => {
    const object = { Bucket: S3_BUCKET, Key: `raw/${name}` };
    const Body = JSON.stringify({ owner: randomUUID(), expiresAt: Date.now() + TTL_MS });
    const take = async (): Promise<boolean> => {
      try {
        await s3.send(new PutObjectCommand({ ...object, Body, IfNoneMatch: '*' }));
        return true;
      } catch (error) {
        if (isConflict(error)) return false;
        throw error;
      }
    };
    while (!(await take())) await pauseBetweenPolls();
    return () => s3.send(new DeleteObjectCommand(object));
  };
});

export const s3Contenders: readonly Contender[] = [
  rawPut,
  ours(
    { store, name: '@locks/s3', floor: rawPut.name },
    backend('@locks/s3', client, async (s3) =>
      (await import('@locks/s3')).s3Backend(s3, { bucket: S3_BUCKET }),
    ),
  ),
];
