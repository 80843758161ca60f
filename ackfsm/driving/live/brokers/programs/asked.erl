%% Answers lines at a port, inside RabbitMQ: a script of expressions, which the Erlang machine evaluates as it starts.
Name = fun(Queue) -> {resource, <<"/">>, queue, Queue} end,
Argument = fun(Text) ->
    [Key, Value] = binary:split(Text, <<"=">>),
    try {Key, signedint, binary_to_integer(Value)}
    catch error:badarg ->
        case Value of
            <<"true">> -> {Key, bool, true};
            <<"false">> -> {Key, bool, false};
            _ -> {Key, longstr, Value}
        end
    end
end,
Depth = fun(Queue) ->
    case amqqueue:get_type(Queue) of
        rabbit_quorum_queue -> % what it has applied, which after a start is less for a moment than what it has
            Counts = fun(State) ->
                Ready = rabbit_fifo:query_messages_ready(State),
                {Ready, rabbit_fifo:query_messages_total(State) - Ready}
            end,
            {ok, _, _} = ra:process_command(amqqueue:get_pid(Queue), rabbit_fifo:make_garbage_collection()), % after all else
            {ok, Found, _} = ra:consistent_query(amqqueue:get_pid(Queue), Counts),
            Found;
        _ ->
            [{_, Ready}, {_, Held}] = rabbit_amqqueue:info(Queue, [messages_ready, messages_unacknowledged]),
            {Ready, Held}
    end
end,
Answer = fun
    ([<<"serves">>]) ->
        atom_to_list(rabbit:is_running());
    ([<<"queue">>, Queue | Arguments]) ->
        Table = [Argument(Each) || Each <- Arguments],
        {_, _} = rabbit_amqqueue:declare(Name(Queue), true, false, Table, none, <<"guest">>),
        ok = mnesia:sync_log(), % else a broker that is killed at once has no such queue when it comes back
        [dets:sync(Each) || Each <- dets:all()], % the name of a quorum queue is written half a second later, else
        "done";
    ([<<"bind">>, Queue, Exchange]) ->
        ok = rabbit_binding:add({binding, {resource, <<"/">>, exchange, Exchange}, Queue, Name(Queue), []}, <<"guest">>),
        ok = mnesia:sync_log(),
        "done";
    ([<<"remove">>, Queue]) ->
        {ok, Found} = rabbit_amqqueue:lookup(Name(Queue)),
        {ok, _} = rabbit_amqqueue:delete(Found, false, false, <<"guest">>),
        "done";
    ([<<"depth">>, Queue]) ->
        {ok, Found} = rabbit_amqqueue:lookup(Name(Queue)),
        {Ready, Held} = Depth(Found),
        io_lib:format("~b ~b", [Ready, Held])
end,
Converse = fun Again(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Line} ->
            Words = binary:split(string:trim(Line), <<" ">>, [global]),
            Said = try Answer(Words) catch Kind:Why -> io_lib:format("error ~0p", [{Kind, Why}]) end,
            gen_tcp:send(Socket, [Said, $\n]),
            Again(Socket);
        _ -> gen_tcp:close(Socket)
    end
end,
Listen = fun() ->
    Port = list_to_integer(os:getenv("ACKFSM_ASKED_PORT")),
    {ok, Listener} = gen_tcp:listen(Port, [binary, {ip, {127, 0, 0, 1}}, {packet, line}, {active, false}, {reuseaddr, true}]),
    (fun Again() ->
        {ok, Socket} = gen_tcp:accept(Listener),
        Converse(Socket),
        Again()
    end)()
end,
spawn(Listen).
