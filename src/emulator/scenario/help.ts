/** The agent's answer to `help`. */
export const HELP = `Each line of a message is a step that I do, in order. I repeat a line that is not a step.

say TEXT                         say it: first in pieces (agent.text), then whole (agent.message)
think TEXT                       think it
call NAME {JSON}                 call a function of yours; "call A {} & call B {}" calls two at the same time
shell COMMAND                    pretend to run it
write PATH TEXT                  write a file; under outputs/ it becomes an artifact (write PATH 20MiB for size)
approve STEP                     do the step once a person approved it
ask QUESTION                     ask a person
preview PORT                     show what is served there
wait 2s                          let time pass
collect 45s                      the artifacts of this turn take that long to become available
burst COUNT [CHARACTERS]         that many messages at once, each of that many characters
fail REASON                      end the turn as failed
hang                             work until the next message, a cancel, or the end of the time
cannot start REASON              as the first line: the session fails, and no turn is opened

{{last}} is the output of the last call, command or answer; {{calls.NAME}} is the output of the last call of NAME.`
