/** The record of a resource has no space for one more waiter. */
export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
  readonly code = 'QUEUE_FULL';

  constructor(waiting: number, bound: string) {
    super(
      `the queue is full: ${waiting} wait, and one more does not fit into the record, which is bounded by ${bound}`,
    );
  }
}
