import { expect, it } from 'vitest'
import { Agenda } from './agenda.ts'
import { Chance } from './chance.ts'

it('a process that falls asleep again before it wakes does all that was due in its order', async () => {
  const agenda = new Agenda(1_763_701_200_000, new Chance(1, 'ties'))
  const start = agenda.now
  const life = { alive: true, asleepUntil: 0 }
  const done: string[] = []
  agenda.in(100, () => done.push('first'), life)
  agenda.in(600, () => done.push('second'), life)
  life.asleepUntil = start + 1000
  agenda.in(500, () => (life.asleepUntil = start + 5000))

  await agenda.runUntil(start + 10_000, () => false)

  expect(done).toEqual(['first', 'second'])
})
