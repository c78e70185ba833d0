import { JOURNEYS, render, travel } from './journeys.ts'

/** Prints the files that each journey passes, in the order of their first calls. */
for (const journey of JOURNEYS) process.stdout.write(`${render(journey.name, await travel(journey))}\n`)
