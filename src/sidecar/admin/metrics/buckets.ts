/** Upper bounds of histograms, seconds. */

/** An exchange over HTTP, from us to the service. */
export const EXCHANGE = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** An exchange with the application, whose timeouts are longer. */
export const CALLBACK = [...EXCHANGE, 15, 30]

/** Turns and ages: up to the two hours that a workspace lives. */
export const AGE = [1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200]

/** From milliseconds (the stream is live, the tool is quick) to hours (a sweep found it, the app answered late). */
export const WAIT = [...EXCHANGE, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200]

/** A commit is one fdatasync: well below a millisecond on a good disk, seconds on one that is about to fail. */
export const COMMIT = [0.0005, 0.001, 0.0025, ...EXCHANGE]
